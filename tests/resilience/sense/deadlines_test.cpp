#include "resilience/sense/deadlines.h"

#include <gtest/gtest.h>

namespace megalith::resilience {
namespace {

TEST(Deadlines, BeforeAnythingIsKnown) {
  const Settings settings{.initial_rank_heartbeat_timeout = 500, .start_timeout = 300};
  const Deadlines deadlines(settings);
  EXPECT_EQ(deadlines.without_beat(Section::step), 500);
  EXPECT_EQ(deadlines.without_beat(Section::rendezvous), 300);
  EXPECT_EQ(deadlines.without_beat(Section::save), 600);
}

TEST(Deadlines, StepsAreLearnedAfterTheWarmUp) {
  const Settings settings;
  Deadlines deadlines(settings);
  for (int step = 0; step < 4; ++step) deadlines.saw_steps(1, 40);
  EXPECT_EQ(deadlines.without_beat(Section::step), 600);
  deadlines.saw_steps(1, 4);
  EXPECT_EQ(deadlines.without_beat(Section::wait), 120);
  for (int step = 0; step < 20; ++step) deadlines.saw_steps(1, 1);
  EXPECT_EQ(deadlines.without_beat(Section::step), 10) << "of the last 20 steps, and never below 10 s";
  EXPECT_EQ(deadlines.without_step(), 30);
}

TEST(Deadlines, QuickStepsAreSeenSeveralAtATime) {
  const Settings settings;
  Deadlines deadlines(settings);
  deadlines.saw_steps(3, 0.4);
  EXPECT_EQ(deadlines.without_beat(Section::step), 600);
  deadlines.saw_steps(2, 0.4);
  EXPECT_EQ(deadlines.without_beat(Section::step), 10);
}

TEST(Deadlines, OtherSectionsByTheirLongest) {
  const Settings settings;
  Deadlines deadlines(settings);
  deadlines.saw_section(Section::load, 2);
  EXPECT_EQ(deadlines.without_beat(Section::load), 30);
  deadlines.saw_section(Section::save, 50);
  deadlines.saw_section(Section::save, 20);
  EXPECT_EQ(deadlines.without_beat(Section::save), 250);
}

TEST(Deadlines, AFixedOneIsKept) {
  const Settings settings{.rank_heartbeat_timeout = 25};
  Deadlines deadlines(settings);
  EXPECT_EQ(deadlines.without_beat(Section::step), 25);
}

TEST(Deadlines, HoldInTheNextGeneration) {
  const Settings settings;
  Deadlines first(settings);
  for (int step = 0; step < 7; ++step) first.saw_steps(1, 6.5);
  first.saw_section(Section::save, 12.25);
  Deadlines next(settings);
  next.take(first.to_text());
  for (int section = 0; section < kSections; ++section) {
    EXPECT_EQ(next.without_beat(Section(section)), first.without_beat(Section(section))) << section;
  }
  next.take("nonsense step=x later=4 =");
}

}  // namespace
}  // namespace megalith::resilience
