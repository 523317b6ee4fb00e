#include "core/process/start_laps.h"

#include <gtest/gtest.h>

#include <chrono>
#include <thread>

namespace megalith {
namespace {

TEST(StartLaps, BeginWithTheProcessAndFollowEachOther) {
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  end_start_lap("exec");
  std::this_thread::sleep_for(std::chrono::milliseconds(30));
  end_start_lap("config");
  const auto laps = start_laps();
  ASSERT_EQ(laps.size(), 2u);
  EXPECT_EQ(laps[0].first, "exec");
  EXPECT_GE(laps[0].second, 0.02);
  EXPECT_EQ(laps[1].first, "config");
  EXPECT_GE(laps[1].second, 0.03);
  EXPECT_LT(laps[1].second, 10.0);
}

}  // namespace
}  // namespace megalith
