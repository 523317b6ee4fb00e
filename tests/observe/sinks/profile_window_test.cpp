#include "observe/sinks/profile_window.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>

namespace megalith::observe {
namespace {

// What a profiler is told before each of six steps, and at the end.
std::string calls_of(const config::NsysProfile& config, int64_t rank) {
  std::string calls;
  {
    ProfileWindow window(config, rank, {.start = [&] { calls += " start"; }, .stop = [&] { calls += " stop"; }});
    for (int64_t step = 0; step < 6; ++step) {
      window.before_step(step);
      calls += fmt::format(" {}", step);
    }
  }
  return calls;
}

TEST(ProfileWindow, StartsAndStopsAroundItsSteps) {
  EXPECT_EQ(calls_of({.enabled = true, .start_step = 2, .end_step = 3}, 0), " 0 1 start 2 3 stop 4 5");
}

TEST(ProfileWindow, IsClosedWhereTheRunEndsInsideIt) {
  EXPECT_EQ(calls_of({.enabled = true, .start_step = 4, .end_step = 90}, 0), " 0 1 2 3 start 4 5 stop");
}

TEST(ProfileWindow, StaysClosedOnOtherRanksAndUnlessEnabled) {
  EXPECT_EQ(calls_of({.enabled = true, .start_step = 1, .end_step = 2, .ranks = {1, 3}}, 0), " 0 1 2 3 4 5");
  EXPECT_EQ(calls_of({.enabled = true, .start_step = 1, .end_step = 2, .ranks = {1, 3}}, 3), " 0 start 1 2 stop 3 4 5");
  EXPECT_EQ(calls_of({.enabled = false, .start_step = 1, .end_step = 2}, 0), " 0 1 2 3 4 5");
}

}  // namespace
}  // namespace megalith::observe
