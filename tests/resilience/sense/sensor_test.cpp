#include "resilience/sense/sensor.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace megalith::resilience {
namespace {

// One node of two ranks, which load what the roster names.
struct LoadingRun {
  explicit LoadingRun(int64_t from_step) {
    state.phase = RunPhase::load;
    state.roster = Roster{.run = "run",
                          .generation = 2,
                          .world_size = 2,
                          .ranks_per_node = 2,
                          .nodes = {{.node = "a", .index = 0}},
                          .from_step = from_step,
                          .store_node = "a"};
    state.nodes["a"] = {.boot_id = "boot", .is_heard = true};
  }

  // Both ranks are in this section, have been quiet for so long, and took this long for sections that they left.
  std::vector<Fact> report(Section section, double quiet, const std::array<double, kSections>& longest) {
    std::vector<Fact> facts = take(section, quiet, longest);
    sensor.look(now, facts);
    return facts;
  }
  std::vector<Fact> take(Section section, double quiet, const std::array<double, kSections>& longest,
                         const std::optional<ProcessReport>& process = std::nullopt) {
    Report report{.header = {.run = "run", .generation = 2, .sequence = ++sequence, .sender = "a"},
                  .boot_id = "boot",
                  .session = 1};
    for (int64_t rank = 0; rank < 2; ++rank) {
      report.ranks.push_back({.rank = rank, .generation = 2, .pid = 10 + rank, .page = PageReport{.section = section}});
      report.ranks.back().page->beat_seconds = quiet;
      report.ranks.back().page->longest = longest;
      report.ranks.back().process = process;
    }
    std::vector<Fact> facts;
    sensor.take(report, now, facts);
    return facts;
  }
  std::vector<FactKind> look() {
    std::vector<Fact> facts;
    sensor.look(now, facts);
    std::vector<FactKind> kinds;
    for (const Fact& fact : facts) kinds.push_back(fact.kind);
    return kinds;
  }
  bool is_overdue(Section section, double quiet, const std::array<double, kSections>& longest) {
    const std::vector<Fact> facts = report(section, quiet, longest);
    return std::any_of(facts.begin(), facts.end(), [](const Fact& fact) { return fact.kind == FactKind::overdue; });
  }

  RunState state;
  Sensor sensor{state};
  double now = 1.0;
  int64_t sequence = 0;
};

std::array<double, kSections> took(Section section, double seconds) {
  std::array<double, kSections> longest{};
  longest[static_cast<size_t>(section)] = seconds;
  return longest;
}

TEST(Sensor, LearnsFromPagesHowLongSectionsTake) {
  EXPECT_FALSE(LoadingRun(7).is_overdue(Section::rendezvous, 120, {})) << "nothing is known yet";
  EXPECT_FALSE(LoadingRun(7).is_overdue(Section::rendezvous, 29, took(Section::rendezvous, 0.5)));
  EXPECT_TRUE(LoadingRun(7).is_overdue(Section::rendezvous, 31, took(Section::rendezvous, 0.5)));
  EXPECT_FALSE(LoadingRun(7).is_overdue(Section::load, 99, took(Section::load, 20)));
  EXPECT_TRUE(LoadingRun(7).is_overdue(Section::load, 101, took(Section::load, 20)));
  EXPECT_TRUE(LoadingRun(7).is_overdue(Section::save, 31, took(Section::save, 2)));
}

TEST(Sensor, AStartThatLoadsNothingSaysNothingOfLoading) {
  EXPECT_FALSE(LoadingRun(-1).is_overdue(Section::load, 120, took(Section::load, 0.1)));
}

// A second would go by until the next report, and another one until the next look.
TEST(Sensor, AsksWhenADeadlineRunsOutAndJudgesWhenAllHaveAnswered) {
  LoadingRun run(7);
  const auto longest = took(Section::load, 20);  // deadline 100 s
  run.report(Section::load, 99.5, longest);
  run.now += 0.4;
  EXPECT_FALSE(run.sensor.look_is_due(run.now));
  run.now += 0.2;
  ASSERT_TRUE(run.sensor.look_is_due(run.now));
  EXPECT_EQ(run.look(), std::vector{FactKind::overdue});
  EXPECT_FALSE(run.sensor.look_is_due(run.now)) << "nobody has answered";
  run.take(Section::load, 100.1, longest, ProcessReport{});
  ASSERT_TRUE(run.sensor.look_is_due(run.now));
  EXPECT_EQ(run.look(), std::vector{FactKind::fault});
}

TEST(Sensor, ANodeWhoseSessionBrokeIsSilentSooner) {
  const auto is_silent = [](LoadingRun& run, double seconds) {
    std::vector<Fact> facts;
    run.sensor.look(run.now + seconds, facts);
    return std::any_of(facts.begin(), facts.end(), [](const Fact& fact) { return fact.kind == FactKind::silent; });
  };
  LoadingRun run(7);
  run.report(Section::load, 1, {});
  EXPECT_FALSE(is_silent(run, 4.9));
  EXPECT_TRUE(is_silent(run, 5.0));
  run.sensor.lost_session("a", run.now + 0.5);
  EXPECT_FALSE(run.sensor.look_is_due(run.now + 3.9));
  EXPECT_TRUE(run.sensor.look_is_due(run.now + 4.0));
  EXPECT_FALSE(is_silent(run, 3.9));
  EXPECT_TRUE(is_silent(run, 4.0));
  run.now += 1.0;
  run.report(Section::load, 1, {});  // it has dialled again
  EXPECT_FALSE(is_silent(run, 4.9));
}

TEST(Sensor, LetsARankBeThatHasBeatenMeanwhile) {
  LoadingRun run(7);
  const auto longest = took(Section::load, 20);
  run.report(Section::load, 99.5, longest);
  run.now += 0.6;
  EXPECT_EQ(run.look(), std::vector{FactKind::overdue});
  run.take(Section::load, 0.1, longest, ProcessReport{});
  EXPECT_EQ(run.look(), std::vector<FactKind>());
  EXPECT_FALSE(run.sensor.look_is_due(run.now + 4.9));
}

}  // namespace
}  // namespace megalith::resilience
