#include "resilience/simulation/simulation.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <mutex>
#include <set>
#include <thread>

#include "core/file.h"
#include "repository.h"

namespace megalith::resilience::testing {
namespace {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr uint64_t kSeeds = 1000;
constexpr uint64_t kLargeSeeds = 3;
#else
constexpr uint64_t kSeeds = 10000;
constexpr uint64_t kLargeSeeds = 100;
#endif

struct Tally {
  std::string violations;
  std::set<int64_t> exit_codes;
  int64_t restarts = 0;
  int64_t successions = 0;
};

Tally simulate_seeds(uint64_t first, uint64_t count, const SimulationOptions& options) {
  Tally tally;
  std::mutex mutex;
  std::atomic<uint64_t> next = first;
  const auto work = [&] {
    for (uint64_t seed = next++; seed < first + count; seed = next++) {
      const SimulationResult result = simulate(seed, options);
      const std::lock_guard lock(mutex);
      if (result.violated != Invariant::none) {
        tally.violations += "seed " + std::to_string(seed) + ": " + name_of(result.violated) + ": " + result.how + "\n";
      }
      tally.exit_codes.insert(result.exit_code);
      tally.restarts += std::max<int64_t>(0, result.generations - 1);
      tally.successions += result.terms - 1;
    }
  };
  std::thread other(work);
  work();
  other.join();
  return tally;
}

// A seed replays by build/cpu/simulate_resilience SEED 1, which prints its story.
TEST(Simulation, InvariantsHold) {
  const Tally tally = simulate_seeds(1, kSeeds, {});
  EXPECT_EQ(tally.violations, "");
  EXPECT_EQ(tally.exit_codes, (std::set<int64_t>{0, 70, 75})) << "every end is met";
  EXPECT_GT(tally.restarts, static_cast<int64_t>(kSeeds / 2));
  EXPECT_GT(tally.successions, static_cast<int64_t>(kSeeds / 10));
}

// The policies of docs/resilience.md, each a block of YAML under a heading of its own.
std::vector<std::string> documented_policies() {
  const std::string page = read_text(in_repository("docs/resilience.md"));
  constexpr std::string_view kBegin = "```yaml policy\n";
  std::vector<std::string> policies;
  for (size_t at = page.find(kBegin); at != std::string::npos; at = page.find(kBegin, at)) {
    at += kBegin.size();
    policies.push_back(page.substr(at, page.find("```", at) - at));
  }
  return policies;
}

TEST(Simulation, InvariantsHoldUnderEveryPolicy) {
  std::vector<std::string> policies = documented_policies();
  ASSERT_GE(policies.size(), 3U);
  // Every row at its lowest, and at its highest.
  policies.emplace_back(
      "{rank_ended: [in_job_restart], user_error: [in_job_restart], call_failed: [in_job_restart], not_finite: "
      "[in_job_restart], load_failed: [in_job_restart], rank_stuck: [in_job_restart], all_wait: [in_job_restart], "
      "livelock: [in_job_restart], store_ended: [in_job_restart], start_failed: [in_job_restart]}");
  std::string highest;
  for (int symptom = 1; symptom < kSymptoms; ++symptom)
    highest += std::string(name_of(Symptom(symptom))) + ": [give_up]\n";
  policies.push_back(highest);
  std::vector<int64_t> restarts;
  for (const std::string& policy : policies) {
    const Tally tally = simulate_seeds(1, kSeeds / 20, {.policy = policy});
    EXPECT_EQ(tally.violations, "") << policy;
    restarts.push_back(tally.restarts);
  }
  // What is left under the highest: nodes that were taken for gone and are there again.
  EXPECT_LT(10 * restarts.back(), *std::min_element(restarts.begin(), restarts.end() - 1));
}

TEST(Simulation, AThousandNodes) {
  const Tally tally = simulate_seeds(1, kLargeSeeds, {.min_nodes = 1000, .max_nodes = 1000, .few_faults = true});
  EXPECT_EQ(tally.violations, "");
}

TEST(Simulation, NothingHappensWhereNothingGoesWrong) {
  for (uint64_t seed = 1; seed <= 50; ++seed) {
    const SimulationResult result = simulate(seed, {.quiet_share = 1.0});
    if (result.faults > 0) continue;  // those that were asked to stop
    EXPECT_EQ(result.violated, Invariant::none) << seed << ": " << result.how;
  }
}

TEST(Simulation, ASeedAlwaysGivesTheSameStory) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    const SimulationResult first = simulate(seed, {.tells_story = true});
    EXPECT_EQ(simulate(seed, {.tells_story = true}).story, first.story) << seed;
    EXPECT_FALSE(first.story.empty());
  }
}

// The first seed in which this invariant breaks where its guard is out.
void expect_broken(Invariant invariant, const SimulationOptions& options, uint64_t within) {
  std::string others;
  for (uint64_t seed = 1; seed <= within; ++seed) {
    const SimulationResult result = simulate(seed, options);
    if (result.violated == invariant) return;
    if (result.violated != Invariant::none) others += std::string(name_of(result.violated)) + "; ";
  }
  ADD_FAILURE() << "without its guard, '" << name_of(invariant) << "' held in " << within
                << " seeds; others: " << others;
}

TEST(SimulationWithoutItsGuard, OneRosterPerGeneration) {
  expect_broken(Invariant::one_roster_per_generation, {.failing_writes = 0.1, .exclusive_create = false}, 5000);
}

TEST(SimulationWithoutItsGuard, NoOldTermTakesEffect) {
  expect_broken(Invariant::no_old_term_takes_effect, {.monitor_guards = {.refuses_old_terms = false}}, 5000);
}

TEST(SimulationWithoutItsGuard, OneRecoveryAtATime) {
  SimulationOptions options;
  options.supervisor_guards.controller.has_one_recovery = false;
  expect_broken(Invariant::one_recovery_at_a_time, options, 2000);
}

TEST(SimulationWithoutItsGuard, NoRestartWithoutProof) {
  SimulationOptions options;
  options.supervisor_guards.sensor.needs_proof = false;
  expect_broken(Invariant::no_restart_without_proof, options, 1000);
}

TEST(SimulationWithoutItsGuard, NoNodeOutWithoutEvidence) {
  SimulationOptions options;
  options.supervisor_guards.controller.blames_whom_evidence_names = false;
  expect_broken(Invariant::no_node_out_without_evidence, options, 1000);
}

TEST(SimulationWithoutItsGuard, EndsInBoundedTime) {
  SimulationOptions options;
  options.supervisor_guards.controller.has_deadlines = false;
  expect_broken(Invariant::ends_in_bounded_time, options, 1000);
}

TEST(SimulationWithoutItsGuard, TheJournalGivesTheState) {
  SimulationOptions options;
  options.supervisor_guards.journals_every_fact = false;
  expect_broken(Invariant::journal_gives_the_state, options, 1000);
}

}  // namespace
}  // namespace megalith::resilience::testing
