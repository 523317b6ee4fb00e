#include "observe/logs/timestamp.h"

#include <gtest/gtest.h>

namespace megalith::observe {
namespace {

TEST(Timestamp, ReadsTheFormsOfIso8601) {
  constexpr int64_t kTime = 1743574104318726;  // date -u -d 2025-04-02T06:08:24 +%s, and its micros
  for (const char* text :
       {"2025-04-02T06:08:24.318726", "2025-04-02 06:08:24.318726Z", "2025-04-02T06:08:24.318726999Z",
        "2025-04-02T08:08:24.318726+02:00", "2025-04-02T01:38:24.318726-0430"}) {
    EXPECT_EQ(parse_timestamp(text), kTime) << text;
  }
  EXPECT_EQ(parse_timestamp("2025-04-02T06:08:24"), kTime - 318726);
  EXPECT_EQ(parse_timestamp("1970-01-01T00:00:00.5"), 500'000);
  EXPECT_EQ(parse_timestamp("1969-12-31T23:59:59Z"), -1'000'000);
}

TEST(Timestamp, RefusesOthers) {
  for (const char* text : {"", "2025-04-02", "2025-04-31T00:00:00", "2025-13-01T00:00:00", "2025-04-02T24:00:00",
                           "2025-04-02T06:08", "2025-04-02T06:08:24 CET", "2025-04-02T06:08:24+2", "1743574104.3"}) {
    EXPECT_EQ(parse_timestamp(text), std::nullopt) << text;
  }
}

}  // namespace
}  // namespace megalith::observe
