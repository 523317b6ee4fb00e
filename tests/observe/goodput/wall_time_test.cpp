#include "observe/goodput/wall_time.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>

#include "golden_data.h"
#include "observe/event_lines.h"
#include "observe/logs/event_reader.h"

namespace megalith::observe {
namespace {

using test::fact_line;
using test::google_line;
using test::step_line;
using test::to_line;

constexpr double kBegin = 1.7e9;

RunEvents collect(const std::vector<std::string>& lines) {
  EventCollector collector("");
  for (const std::string& line : lines) collector.take(line);
  return std::move(collector).finish();
}

void expect_adds_up(const WallTime& wall) {
  EXPECT_NEAR(std::accumulate(wall.seconds.begin(), wall.seconds.end(), 0.0), wall.total(), 1e-5);
  UseSeconds by_slice{};
  double at = wall.begin;
  for (const TimeSlice& slice : wall.slices) {
    EXPECT_NEAR(slice.begin, at, 1e-6);
    EXPECT_GT(slice.end, slice.begin);
    at = slice.end;
    by_slice[static_cast<size_t>(slice.use)] += slice.end - slice.begin;
  }
  EXPECT_NEAR(at, wall.end, 1e-6);
  for (size_t use = 0; use < kTimeUses; ++use) EXPECT_NEAR(by_slice[use], wall.seconds[use], 1e-3) << use;
  double last_end = wall.begin;
  for (const Incident& incident : wall.incidents) {
    EXPECT_GE(incident.begin, last_end - 1e-6);
    EXPECT_NEAR(std::accumulate(incident.seconds.begin(), incident.seconds.end(), 0.0), incident.end - incident.begin,
                1e-5);
    last_end = incident.end;
  }
  EXPECT_LE(last_end, wall.end + 1e-6);
}

// Two attempts: the first makes four steps, saves after two, and fails; the second resumes from the save.
std::vector<std::string> run_with_a_fault() {
  const auto at = [](double seconds) { return kBegin + seconds; };
  return {
      to_line({.time = at(0), .event = "job_started", .step = 0}),
      to_line({.time = at(1), .event = "checkpoint_loaded", .step = 0}),
      step_line(at(6), 0, 4.0),  // from 2 on, and slow as the first one is
      step_line(at(7), 1, 1.0),
      to_line({.time = at(7), .event = "checkpoint_save", .step = 2, .phase = "begin"}),
      to_line({.time = at(8.5), .event = "checkpoint_saved", .step = 2}),
      to_line({.time = at(9), .event = "checkpoint_save", .step = 2, .phase = "end", .duration = 2.0}),
      step_line(at(10), 2, 1.0),
      step_line(at(11), 3, 1.0),
      to_line({.time = at(15), .event = "job_terminated", .reason = "device lost"}),
      to_line({.time = at(20), .event = "job_started", .step = 2, .generation = 1}),
      to_line(
          {.time = at(24), .event = "checkpoint_load", .step = 2, .phase = "end", .duration = 3.0, .generation = 1}),
      to_line({.time = at(24), .event = "checkpoint_loaded", .step = 2, .generation = 1}),
      step_line(at(26), 2, 2.0, 0.0, 1),
      step_line(at(27), 3, 1.0, 0.0, 1),
      step_line(at(29.5), 4, 2.5, 0.5, 1),
      step_line(at(30.5), 5, 1.0, 0.25, 1),  // the wait was hidden
      to_line({.time = at(31.5), .event = "validation", .step = 6, .phase = "end", .duration = 1.0, .generation = 1}),
      to_line({.time = at(32), .event = "job_terminated", .step = 6, .generation = 1}),
  };
}

TEST(WallTime, EverySecondOfARunHasItsUse) {
  const WallTime wall = explain_wall_time(collect(run_with_a_fault()));
  expect_adds_up(wall);
  EXPECT_EQ(wall.total(), 32.0);
  EXPECT_EQ(wall.reference_step_time, 1.0);
  EXPECT_EQ(wall.kept_steps, 6);
  EXPECT_NEAR(wall.seconds_of(TimeUse::productive), 6.0, 1e-5);
  EXPECT_NEAR(wall.seconds_of(TimeUse::slowdown), 1.0, 1e-5);
  EXPECT_NEAR(wall.seconds_of(TimeUse::data_wait), 0.5, 1e-5);
  EXPECT_NEAR(wall.seconds_of(TimeUse::wasted_steps), 3.0, 1e-5);  // two, and one in flight
  EXPECT_NEAR(wall.seconds_of(TimeUse::checkpoint_save), 2.0, 1e-5);
  EXPECT_NEAR(wall.seconds_of(TimeUse::checkpoint_load), 3.0, 1e-5);
  EXPECT_NEAR(wall.seconds_of(TimeUse::validation), 1.0, 1e-5);
  EXPECT_NEAR(wall.seconds_of(TimeUse::detection), 3.0, 1e-5);
  EXPECT_NEAR(wall.seconds_of(TimeUse::restart), 5.0, 1e-5);
  EXPECT_NEAR(wall.seconds_of(TimeUse::start_up), 2 + 3 + 1 + 1, 1e-5);
  EXPECT_NEAR(wall.seconds_of(TimeUse::planned_stop), 0.0, 1e-5);
  EXPECT_NEAR(wall.seconds_of(TimeUse::unknown), 0.5, 1e-5);  // from the last step to the end of a complete run
}

TEST(WallTime, AnIncidentRunsFromTheLastKeptMomentToTheFirstNormalStep) {
  const WallTime wall = explain_wall_time(collect(run_with_a_fault()));
  ASSERT_EQ(wall.incidents.size(), 1u);
  const Incident& incident = wall.incidents[0];
  EXPECT_NEAR(incident.begin - kBegin, 9.0, 1e-5);
  EXPECT_NEAR(incident.end - kBegin, 25.0, 1e-5);
  EXPECT_EQ(incident.reason, "device lost");
  EXPECT_EQ(incident.last_step, 4);
  EXPECT_EQ(incident.resumed_step, 2);
  EXPECT_NEAR(incident.seconds[static_cast<size_t>(TimeUse::wasted_steps)], 3.0, 1e-5);
  EXPECT_NEAR(incident.seconds[static_cast<size_t>(TimeUse::start_up)], 2.0, 1e-5);
}

// A supervisor's journal has what the run's own log cannot tell.
std::vector<std::string> with_journal(std::vector<std::string> lines) {
  for (const std::string& line :
       {fact_line(kBegin - 5, "order_done", "kill"), fact_line(kBegin - 4, "claimed"),
        fact_line(kBegin + 12.5, "fault", "", "rank 3 ended by signal 9"),
        fact_line(kBegin + 12.6, "fault", "", "rank 1 ended with code 3"), fact_line(kBegin + 13.5, "tick"),
        fact_line(kBegin + 13.8, "order_done", "kill"), fact_line(kBegin + 14, "order_done", "kill"),
        fact_line(kBegin + 14.25, "checked"), fact_line(kBegin + 15, "claimed"), fact_line(kBegin + 27, "progress")})
    lines.push_back(line);
  return lines;
}

TEST(WallTime, AJournalTellsWhatTheSupervisorDid) {
  const WallTime wall = explain_wall_time(collect(with_journal(run_with_a_fault())));
  expect_adds_up(wall);
  EXPECT_EQ(wall.total(), 32.0) << "its own time before the run is none of the run's";
  EXPECT_NEAR(wall.seconds_of(TimeUse::detection), 0.5, 1e-5);
  EXPECT_NEAR(wall.seconds_of(TimeUse::decision), 1.0, 1e-5);
  EXPECT_NEAR(wall.seconds_of(TimeUse::teardown), 0.5, 1e-5);
  EXPECT_NEAR(wall.seconds_of(TimeUse::node_check), 0.25, 1e-5);
  EXPECT_NEAR(wall.seconds_of(TimeUse::waiting), 0.75, 1e-5);
  EXPECT_NEAR(wall.seconds_of(TimeUse::restart), 5.0, 1e-5);
  ASSERT_EQ(wall.incidents.size(), 1u);
  EXPECT_EQ(wall.incidents[0].reason, "rank 3 ended by signal 9");
  EXPECT_NEAR(wall.incidents[0].seconds[static_cast<size_t>(TimeUse::decision)], 1.0, 1e-5);
}

TEST(WallTime, AStartInVainIsOneOfARecovery) {
  std::vector<std::string> lines = with_journal(run_with_a_fault());
  for (const std::string& line : {fact_line(kBegin + 17, "fault"), fact_line(kBegin + 18, "tick"),
                                  fact_line(kBegin + 18.5, "order_done", "kill"), fact_line(kBegin + 19, "claimed")})
    lines.insert(lines.end() - 1, line);
  const WallTime wall = explain_wall_time(collect(lines));
  expect_adds_up(wall);
  EXPECT_NEAR(wall.seconds_of(TimeUse::decision), 1.0 + 1.0, 1e-5);
  EXPECT_NEAR(wall.seconds_of(TimeUse::teardown), 0.5 + 0.5, 1e-5);
  EXPECT_NEAR(wall.seconds_of(TimeUse::waiting), 0.75 + 0.5, 1e-5);
  EXPECT_NEAR(wall.seconds_of(TimeUse::restart), 2.0 + 1.0, 1e-5);
  EXPECT_EQ(wall.incidents.size(), 1u);
}

TEST(WallTime, AGivenReferenceMovesTimeToSlowdown) {
  const WallTime wall = explain_wall_time(collect(run_with_a_fault()), 0.5);
  expect_adds_up(wall);
  EXPECT_EQ(wall.reference_step_time, 0.5);
  EXPECT_NEAR(wall.seconds_of(TimeUse::productive), 3.0, 1e-5);
}

TEST(WallTime, AKillInsideASaveLeavesItOpen) {
  std::vector<std::string> lines = run_with_a_fault();
  // Killed at the end of the second save: no word of an end, then a third start.
  lines.pop_back();
  lines.push_back(
      to_line({.time = kBegin + 32, .event = "checkpoint_save", .step = 6, .phase = "begin", .generation = 1}));
  lines.push_back(to_line({.time = kBegin + 40, .event = "job_started", .step = 2, .generation = 2}));
  lines.push_back(to_line({.time = kBegin + 41, .event = "checkpoint_loaded", .step = 2, .generation = 2}));
  const WallTime wall = explain_wall_time(collect(lines));
  expect_adds_up(wall);
  EXPECT_NEAR(wall.seconds_of(TimeUse::checkpoint_save), 2.0 + 2.0, 1e-5);  // it usually takes two
  EXPECT_EQ(wall.kept_steps, 2);
  EXPECT_EQ(wall.incidents.size(), 2u);
}

TEST(WallTime, APlannedStopIsNoFault) {
  const WallTime wall = explain_wall_time(collect({
      to_line({.time = kBegin, .event = "job_started", .step = 0}),
      to_line({.time = kBegin, .event = "checkpoint_loaded", .step = 0}),
      step_line(kBegin + 1, 0, 1.0),
      step_line(kBegin + 2, 1, 1.0),
      to_line({.time = kBegin + 2, .event = "job_terminated", .step = 2, .reason = "SIGTERM"}),
      to_line({.time = kBegin + 102, .event = "job_started", .step = 2, .generation = 1}),
      to_line({.time = kBegin + 103, .event = "checkpoint_loaded", .step = 2, .generation = 1}),
      step_line(kBegin + 104, 2, 1.0, 0.0, 1),
  }));
  expect_adds_up(wall);
  EXPECT_NEAR(wall.seconds_of(TimeUse::planned_stop), 100.0, 1e-5);
  EXPECT_NEAR(wall.seconds_of(TimeUse::wasted_steps), 0.0, 1e-5);
  EXPECT_EQ(wall.kept_steps, 3);
  ASSERT_EQ(wall.incidents.size(), 1u);
  EXPECT_EQ(wall.incidents[0].reason, "SIGTERM");
}

TEST(WallTime, ARunningJobHasLostNothing) {
  std::vector<std::string> lines = run_with_a_fault();
  lines.resize(9);  // up to the fourth step, two of them not saved
  const WallTime wall = explain_wall_time(collect(lines));
  expect_adds_up(wall);
  EXPECT_EQ(wall.kept_steps, 4);
  EXPECT_EQ(wall.seconds_of(TimeUse::wasted_steps), 0.0);
  EXPECT_TRUE(wall.incidents.empty());
}

// Only checkpoints are told: steps 0 to 10, 10 to 20 (rolled back), and again.
TEST(WallTime, GooglesLogTellsCheckpointsOnly) {
  const WallTime wall = explain_wall_time(collect({
                                              google_line(0, "job_started"),
                                              google_line(5, "job_started"),
                                              google_line(10, "checkpoint_loaded", 0),
                                              google_line(50, "checkpoint_saved", 10),
                                              google_line(70, "checkpoint_saved", 20),
                                              google_line(95, "job_terminated"),
                                              google_line(100, "job_started"),
                                              google_line(102, "job_terminated"),
                                              google_line(103, "job_started"),
                                              google_line(105, "checkpoint_loaded", 10),
                                              google_line(145, "checkpoint_saved", 20),
                                              google_line(165, "checkpoint_saved", 30),
                                          }),
                                          1.5);
  expect_adds_up(wall);
  EXPECT_EQ(wall.kept_steps, 30);
  EXPECT_NEAR(wall.seconds_of(TimeUse::productive), 45.0, 1e-5);
  EXPECT_NEAR(wall.seconds_of(TimeUse::slowdown), 15.0, 1e-5);  // the log's own pace is 2 s
  EXPECT_NEAR(wall.seconds_of(TimeUse::wasted_steps), 20.0 + 20.0, 1e-5);
  EXPECT_NEAR(wall.seconds_of(TimeUse::detection), 5.0, 1e-5);
  EXPECT_NEAR(wall.seconds_of(TimeUse::restart), 8.0, 1e-5);
  EXPECT_NEAR(wall.seconds_of(TimeUse::start_up), 10.0 + 20.0 + 2.0 + 20.0, 1e-5);
  ASSERT_EQ(wall.incidents.size(), 1u);
  EXPECT_EQ(wall.incidents[0].resumed_step, 10);
}

TEST(WallTime, AStartByAFastClockIsNoRestart) {
  const WallTime wall = explain_wall_time(collect({
      google_line(0, "job_started"),
      google_line(10, "checkpoint_loaded", 0),
      google_line(12, "job_started"),
      google_line(30, "checkpoint_saved", 10),
      google_line(50, "checkpoint_saved", 20),
  }));
  expect_adds_up(wall);
  EXPECT_EQ(wall.kept_steps, 20);
  EXPECT_TRUE(wall.incidents.empty());
}

TEST(WallTime, TheGoldenLogIsExplained) {
  MEGALITH_GOLDEN_OR_SKIP(golden);
  const WallTime wall = explain_wall_time(read_run_events(golden / "goodput" / "event_log.jsonl"), 8.0);
  expect_adds_up(wall);
  EXPECT_NEAR(wall.total(), 35364.285491, 1e-5);
  EXPECT_LT(wall.seconds_of(TimeUse::unknown), 0.01 * wall.total());
  EXPECT_EQ(wall.kept_steps, 1920);
  // Steps faster than the reference are not counted as more than they took.
  EXPECT_LE(wall.seconds_of(TimeUse::productive), 1920 * 8.0);
  EXPECT_GT(wall.seconds_of(TimeUse::productive), 0.98 * 1920 * 8.0);
  EXPECT_EQ(wall.incidents.size(), 44u);
}

TEST(WallTime, AnyPieceOfALogAddsUp) {
  std::vector<std::string> lines = run_with_a_fault();
  std::mt19937 random(1);
  for (int round = 0; round < 300; ++round) {
    std::shuffle(lines.begin(), lines.end(), random);
    const std::vector<std::string> piece(lines.begin(), lines.begin() + 1 + static_cast<int>(random() % lines.size()));
    expect_adds_up(explain_wall_time(collect(piece)));
  }
}

TEST(WallTime, NothingTakesNoTime) {
  const WallTime wall = explain_wall_time({});
  EXPECT_EQ(wall.total(), 0.0);
  EXPECT_EQ(wall.productive_fraction(), 0.0);
}

}  // namespace
}  // namespace megalith::observe
