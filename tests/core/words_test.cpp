#include "core/words.h"

#include <gtest/gtest.h>

#include <limits>

namespace megalith {
namespace {

TEST(Words, CountAndGroup) {
  EXPECT_EQ(counted(1, "step"), "1 step");
  EXPECT_EQ(counted(0, "step"), "0 steps");
  EXPECT_EQ(with_commas(999), "999");
  EXPECT_EQ(with_commas(1234567.4), "1,234,567");
  EXPECT_EQ(with_commas(int64_t{405'853'388'800}), "405,853,388,800");
}

TEST(Words, BytesHaveTheirUnit) {
  EXPECT_EQ(bytes_in_words(0), "0 B");
  EXPECT_EQ(bytes_in_words(1023), "1023 B");
  EXPECT_EQ(bytes_in_words(1536), "1.5 KiB");
  EXPECT_EQ(bytes_in_words(1023 * 1024), "1023.0 KiB");
  EXPECT_EQ(bytes_in_words(477.3 * 1024 * 1024), "477.3 MiB");
  EXPECT_EQ(bytes_in_words(int64_t{3} << 29), "1.50 GiB");
  EXPECT_EQ(bytes_in_words(static_cast<double>(int64_t{5} << 50)), "5120.00 TiB");
}

TEST(Words, Shares) {
  EXPECT_EQ(percent_in_words(0.1234), "12.3%");
  EXPECT_EQ(percent_in_words(0.0), "0%");
  EXPECT_EQ(percent_in_words(1e-6), "below 0.01%");
}

TEST(Words, DurationsAreShort) {
  EXPECT_EQ(duration_in_words(0.0), "0 s");
  EXPECT_EQ(duration_in_words(3.2e-5), "32 us");
  EXPECT_EQ(duration_in_words(0.0123), "12.3 ms");
  EXPECT_EQ(duration_in_words(0.123), "0.123 s");
  EXPECT_EQ(duration_in_words(273), "4 min 33 s");
  EXPECT_EQ(duration_in_words(3599.9), "1 h 0 min");
  EXPECT_EQ(duration_in_words(5 * 86400 + 4 * 3600), "5 d 4 h");
  EXPECT_EQ(duration_in_words(std::numeric_limits<double>::infinity()), "?");
  EXPECT_EQ(format_duration(110), "01:50");
  EXPECT_EQ(format_duration(3723.9), "1:02:03");
  EXPECT_EQ(format_duration(-1), "00:00");
}

}  // namespace
}  // namespace megalith
