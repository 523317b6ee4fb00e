#include "resilience/decide/controller.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "resilience/decide/holdings.h"

namespace megalith::resilience {
namespace {

// A supervisor's mind with two nodes that have ranks, and whoever else is heard: orders are answered as a test says.
class ControllerTest : public ::testing::Test {
 protected:
  ControllerTest() {
    Settings settings{.run = "run-1", .nodes = 2, .ranks_per_node = 1, .start_timeout = 60};
    lead(1, settings);
    take({.kind = FactKind::tick});
  }

  void lead(int64_t term, const Settings& settings, const std::string& evidence = "") {
    take({.kind = FactKind::lead,
          .generation = state.generation(),
          .number = term,
          .evidence = evidence,
          .text = to_text(settings),
          .digest = state.roster ? digest_of(*state.roster) : ""});
  }
  void take(Fact fact) {
    fact.time = now;
    last = decide(state, fact);
  }
  void pass(double seconds) {
    now += seconds;
    take({.kind = FactKind::tick});
  }
  void hear(const std::string& node) {
    take({.kind = FactKind::heard, .node = node, .text = "10.0.0.1", .digest = "boot"});
  }
  void answer(const std::string& node, OrderKind order) {
    take({.kind = FactKind::order_done, .node = node, .generation = state.generation(), .order = name_of(order)});
  }
  void tell(const std::string& node, const std::string& holdings = "") {
    take({.kind = FactKind::holdings, .node = node, .text = holdings, .order = name_of(OrderKind::tell)});
  }
  std::vector<std::string> heard() const {
    std::vector<std::string> names;
    for (const auto& [name, node] : state.nodes) {
      if (node.is_heard) names.push_back(name);
    }
    return names;
  }
  // From stop to the new roster's ranks, with everybody that is heard.
  void recover(const std::string& holdings = "") {
    for (const std::string& node : heard()) answer(node, OrderKind::kill);
    if (state.phase == RunPhase::check) {
      for (const std::string& node : heard()) {
        take({.kind = FactKind::checked,
              .node = node,
              .number = static_cast<int64_t>(CheckOutcome::ok),
              .order = "check"});
      }
    }
    for (const std::string& node : heard()) tell(node, holdings);
    if (state.phase == RunPhase::place) pass(31);  // the pause before a restart
    if (state.phase == RunPhase::claim) claimed_and_started();
  }
  void claimed_and_started() {
    take({.kind = FactKind::claimed, .generation = state.next->generation});
    take({.kind = FactKind::store_ready,
          .node = state.roster->store_node,
          .generation = state.generation(),
          .number = 4711});
    for (const RosterNode& node : state.roster->nodes) answer(node.node, OrderKind::start);
    take({.kind = FactKind::joined, .generation = state.generation()});
    take({.kind = FactKind::loaded, .generation = state.generation()});
  }
  void progress(int64_t step) { take({.kind = FactKind::progress, .generation = state.generation(), .step = step}); }
  void start_run(const std::vector<std::string>& nodes) {
    for (const std::string& node : nodes) hear(node);
    pass(6);
    pass(1);
    recover();
    progress(0);
  }
  void fault(Symptom symptom, const std::string& node, std::vector<int64_t> ranks = {}) {
    take({.kind = FactKind::fault,
          .node = node,
          .ranks = std::move(ranks),
          .generation = state.generation(),
          .step = state.best_step,
          .number = state.best_step + 1,
          .symptom = symptom,
          .evidence = "node " + node,
          .text = "words"});
  }
  bool ordered(const std::string& node, OrderKind order) const {
    return std::any_of(last.actions.begin(), last.actions.end(), [&](const Action& action) {
      return action.kind == Action::Kind::order && action.node == node && action.order == order;
    });
  }
  std::vector<std::string> members() const {
    std::vector<std::string> names;
    for (const RosterNode& node : state.roster->nodes) names.push_back(node.node);
    return names;
  }

  RunState state;
  Decision last;
  double now = 0.0;
};

using Names = std::vector<std::string>;

TEST_F(ControllerTest, ARunBeginsWithTheNodesThatAreThere) {
  start_run({"a", "b", "c"});
  EXPECT_EQ(state.phase, RunPhase::running);
  EXPECT_EQ(members(), (Names{"a", "b"}));
  EXPECT_EQ(state.roster->spares, Names{"c"});
  EXPECT_EQ(state.generation(), 1);
  EXPECT_EQ(state.budgets, RosterBudgets{});
}

TEST_F(ControllerTest, ARankThatEndsIsAnInJobRestart) {
  start_run({"a", "b", "c"});
  fault(Symptom::rank_ended, "b", {1});
  EXPECT_EQ(state.phase, RunPhase::gather);
  pass(1);
  EXPECT_TRUE(ordered("b", OrderKind::kill));
  recover("memory 7 g1 0-1/2");
  EXPECT_EQ(members(), (Names{"a", "b"}));
  EXPECT_EQ(state.roster->from_step, 7);
  EXPECT_EQ(state.budgets.in_job_restarts, 1);
  EXPECT_EQ(state.phase, RunPhase::redo);
  progress(9);
  EXPECT_EQ(state.budgets, RosterBudgets{}) << "a new step gives budgets back";
}

TEST_F(ControllerTest, TheSameNodeClimbsTheLadder) {
  start_run({"a", "b", "c"});
  for (int64_t step = 1; step <= 2; ++step) {
    fault(Symptom::rank_ended, "b", {1});
    pass(1);
    EXPECT_EQ(state.incident.rung, step == 1 ? Rung::in_job_restart : Rung::workload_restart);
    recover();
    progress(10 * step);
  }
  fault(Symptom::rank_ended, "b", {1});
  pass(1);
  recover();
  EXPECT_EQ(members(), (Names{"a", "c"}));
  EXPECT_NE(state.nodes.at("b").out, "");
}

TEST_F(ControllerTest, SaysWhichStepsAreDoneAgainAndWhenTheyComeFromThePersistentTier) {
  const auto told = [&](const std::string& words) {
    return std::any_of(state.story.begin(), state.story.end(),
                       [&](const std::string& line) { return line.find(words) != std::string::npos; });
  };
  start_run({"a", "b", "c"});
  progress(8);
  fault(Symptom::rank_ended, "b", {1});
  pass(1);
  recover("memory 8 g1 0-1/2; persistent 6 g1 0-1/2");
  EXPECT_TRUE(told("from step 8, 1 that the run has done are done again"));
  EXPECT_FALSE(told("persistent tier"));
  fault(Symptom::rank_ended, "a", {0});
  pass(1);
  recover("memory 8 g1 1/2; persistent 6 g1 0-1/2");
  EXPECT_TRUE(told("step 6 is on the persistent tier alone"));
  EXPECT_TRUE(told("from step 6, 3 that the run has done are done again"));
}

TEST_F(ControllerTest, ALostNodeIsReplacedAndReturnsAsASpare) {
  start_run({"a", "b", "c"});
  take({.kind = FactKind::silent, .node = "a", .evidence = "node a is silent"});
  EXPECT_EQ(state.phase, RunPhase::running) << "a hint";
  fault(Symptom::node_gone, "a");
  pass(1);
  recover();
  EXPECT_EQ(members(), (Names{"c", "b"})) << "b keeps its ranks";
  hear("a");
  EXPECT_EQ(state.nodes.at("a").out, "");
  EXPECT_TRUE(ordered("a", OrderKind::kill)) << "of what it still runs";
}

TEST_F(ControllerTest, WithoutASpareItWaitsThenGivesUp) {
  start_run({"a", "b"});
  take({.kind = FactKind::silent, .node = "a", .evidence = "node a is silent"});
  fault(Symptom::node_gone, "a");
  pass(1);
  recover();
  EXPECT_EQ(state.phase, RunPhase::wait);
  pass(100);
  EXPECT_EQ(state.phase, RunPhase::wait);
  pass(100);
  EXPECT_EQ(state.verdict, 70);
  EXPECT_TRUE(ordered("b", OrderKind::finish));
}

TEST_F(ControllerTest, WithoutASpareItGoesOnWithFewerWhereTheyAreAccepted) {
  state.settings.fewer_nodes = {1};
  start_run({"a", "b"});
  take({.kind = FactKind::silent, .node = "a", .evidence = "node a is silent"});
  fault(Symptom::node_gone, "a");
  pass(1);
  recover();
  EXPECT_EQ(state.phase, RunPhase::wait);
  pass(179);
  EXPECT_EQ(state.phase, RunPhase::wait);
  pass(2);
  recover("memory 7 g1 0-1/2");
  EXPECT_EQ(members(), Names{"b"});
  EXPECT_EQ(state.roster->world_size, 1);
  EXPECT_EQ(state.roster->from_step, 7);
  progress(9);
  // What is wrong with it now waits for nobody.
  fault(Symptom::rank_ended, "b", {0});
  pass(1);
  recover("memory 9 g2 0/1");
  EXPECT_EQ(state.phase, RunPhase::redo);
  EXPECT_EQ(members(), Names{"b"});
  // A restart takes everybody who is there.
  progress(11);
  hear("a");
  fault(Symptom::rank_ended, "b", {0});
  pass(1);
  recover("memory 11 g3 0/1");
  EXPECT_EQ(members(), (Names{"b", "a"}));
  EXPECT_EQ(state.fewer_nodes, 0);
}

TEST_F(ControllerTest, WhenNodesHaveBeenBackForLongEnoughItStopsAndTakesThemIn) {
  state.settings.fewer_nodes = {1};
  start_run({"a", "b"});
  take({.kind = FactKind::silent, .node = "a", .evidence = "node a is silent"});
  fault(Symptom::node_gone, "a");
  pass(1);
  recover();
  pass(181);
  recover("memory 7 g1 0-1/2");
  progress(9);
  ASSERT_EQ(members(), Names{"b"});
  hear("a");
  pass(299);
  EXPECT_FALSE(state.move);
  pass(2);
  EXPECT_TRUE(ordered("b", OrderKind::stop));
  EXPECT_FALSE(ordered("a", OrderKind::stop));
  const RosterBudgets before = state.budgets;
  take({.kind = FactKind::stopped, .generation = state.generation()});
  EXPECT_EQ(state.phase, RunPhase::stop);
  EXPECT_FALSE(state.verdict);
  recover("memory 11 g2 0/1");
  EXPECT_EQ(members(), (Names{"b", "a"}));
  EXPECT_EQ(state.roster->from_step, 11);
  EXPECT_EQ(state.budgets.in_job_restarts, before.in_job_restarts);
  EXPECT_EQ(state.fewer_nodes, 0);
}

TEST_F(ControllerTest, AMoveWhoseRanksDoNotStopKillsThemAndAFaultTakesItsPlace) {
  state.settings.fewer_nodes = {1};
  start_run({"a", "b"});
  take({.kind = FactKind::silent, .node = "a", .evidence = "node a is silent"});
  fault(Symptom::node_gone, "a");
  pass(1);
  recover();
  pass(181);
  recover("memory 7 g1 0-1/2");
  progress(9);
  hear("a");
  pass(301);
  ASSERT_TRUE(state.move);
  pass(599);
  EXPECT_EQ(state.phase, RunPhase::running);
  pass(2);
  EXPECT_EQ(state.phase, RunPhase::stop);
  EXPECT_TRUE(ordered("b", OrderKind::kill));
  recover("memory 9 g2 0/1");
  progress(11);
  EXPECT_EQ(members(), (Names{"b", "a"}));
}

TEST_F(ControllerTest, AFailedCallIsNoCauseBesideAnother) {
  start_run({"a", "b", "c"});
  fault(Symptom::call_failed, "", {1});
  fault(Symptom::rank_ended, "b", {1});
  pass(1);
  ASSERT_EQ(state.past.size(), 1U);
  EXPECT_EQ(state.past.front().symptom, Symptom::rank_ended);
}

TEST_F(ControllerTest, BudgetsOfZeroSkipTheirRungs) {
  state.settings.max_in_job_restarts = state.settings.max_workload_restarts = 0;
  start_run({"a", "b"});
  fault(Symptom::rank_ended, "b", {1});
  pass(1);
  for (const std::string& node : heard()) answer(node, OrderKind::kill);
  EXPECT_EQ(state.verdict, 70);
}

TEST_F(ControllerTest, TheUsersMistakeEndsTheRunBeforeAStep) {
  for (const char* node : {"a", "b"}) hear(node);
  pass(6);
  pass(1);
  recover();
  fault(Symptom::user_error, "b", {1});
  pass(1);
  for (const std::string& node : heard()) answer(node, OrderKind::kill);
  EXPECT_EQ(state.verdict, 2);
}

TEST_F(ControllerTest, FiveStartsWithoutANewStepAreEnough) {
  for (const char* node : {"a", "b"}) hear(node);
  pass(6);
  pass(1);
  recover();
  int64_t starts = 1;
  for (; state.phase == RunPhase::redo && starts < 20; ++starts) {
    fault(Symptom::not_finite, "b", {1});
    state.past.clear();  // as if it were another step each time
    pass(1);
    if (state.incident.gives_up) break;
    recover();
  }
  EXPECT_EQ(starts, 5);
  EXPECT_EQ(state.incident.gives_up, 70);
}

TEST_F(ControllerTest, AStepThatCannotBeLoadedIsNotTriedAgain) {
  start_run({"a", "b"});
  fault(Symptom::rank_ended, "b", {1});
  pass(1);
  recover("memory 7 g1 0-1/2; persistent 4 g1 0-1/2");
  ASSERT_EQ(state.roster->from_step, 7);
  take({.kind = FactKind::fault,
        .node = "b",
        .ranks = {1},
        .generation = 2,
        .step = 7,
        .symptom = Symptom::load_failed});
  pass(1);
  recover("memory 7 g1 0-1/2; persistent 4 g1 0-1/2");
  EXPECT_EQ(state.roster->from_step, 4);
}

TEST_F(ControllerTest, AStopIsAskedForAtABoundaryAndKilledIfItIsLate) {
  start_run({"a", "b"});
  take({.kind = FactKind::stop_requested, .seconds = 30, .evidence = "a signal"});
  EXPECT_TRUE(ordered("a", OrderKind::stop));
  pass(31);
  EXPECT_TRUE(ordered("a", OrderKind::kill));
  for (const std::string& node : heard()) answer(node, OrderKind::kill);
  EXPECT_EQ(state.verdict, 75);
}

TEST_F(ControllerTest, CompleteAndStoppedRunsEndWithTheirCodes) {
  start_run({"a", "b"});
  take({.kind = FactKind::completed, .generation = 1});
  EXPECT_EQ(state.verdict, 0);
  EXPECT_TRUE(ordered("a", OrderKind::finish));
  pass(11);
  EXPECT_EQ(state.phase, RunPhase::over) << "also where a monitor does not answer";
}

TEST_F(ControllerTest, FactsOfOtherGenerationsAreDropped) {
  start_run({"a", "b"});
  for (const FactKind kind : {FactKind::fault, FactKind::completed, FactKind::stopped, FactKind::progress}) {
    take({.kind = kind, .generation = 7, .step = 99, .symptom = Symptom::rank_ended});
    EXPECT_EQ(state.phase, RunPhase::running) << name_of(kind);
  }
  EXPECT_EQ(state.best_step, 0);
}

TEST_F(ControllerTest, AConflictTakesTheNextGeneration) {
  start_run({"a", "b"});
  fault(Symptom::rank_ended, "b", {1});
  pass(1);
  for (const std::string& node : heard()) answer(node, OrderKind::kill);
  for (const std::string& node : heard()) tell(node);
  ASSERT_EQ(state.phase, RunPhase::claim);
  take({.kind = FactKind::claim_conflict, .generation = 2});
  recover();
  EXPECT_EQ(state.generation(), 3);
}

TEST_F(ControllerTest, ARosterThatCannotBeWrittenIsTriedAgain) {
  start_run({"a", "b"});
  fault(Symptom::rank_ended, "b", {1});
  pass(1);
  for (const std::string& node : heard()) answer(node, OrderKind::kill);
  for (const std::string& node : heard()) tell(node);
  take({.kind = FactKind::claim_failed, .generation = 2, .evidence = "no space left"});
  pass(1);
  EXPECT_TRUE(last.actions.empty());
  pass(5);
  ASSERT_EQ(last.actions.size(), 1U);
  EXPECT_EQ(last.actions.front().kind, Action::Kind::claim);
}

TEST_F(ControllerTest, AStopEndsWithTheFleetThatWasAskedForIt) {
  start_run({"a", "b"});
  take({.kind = FactKind::stop_requested, .evidence = "SIGTERM"});
  lead(2, state.settings);
  EXPECT_TRUE(state.stop_requested) << "the supervisor alone was killed: its successor finishes what was begun";
  lead(3, state.settings, kNewFleet);
  EXPECT_FALSE(state.stop_requested) << "everything was killed, and started anew to train";

  take({.kind = FactKind::stop_requested, .evidence = "SIGTERM"});
  take({.kind = FactKind::stopped, .generation = state.generation()});
  ASSERT_EQ(state.verdict, 75);
  lead(4, state.settings, kNewFleet);
  EXPECT_EQ(state.phase, RunPhase::gather);
  EXPECT_FALSE(state.verdict);
}

TEST_F(ControllerTest, ASuccessorGoesOnWithWhatWasClaimed) {
  start_run({"a", "b"});
  fault(Symptom::rank_ended, "b", {1});
  pass(1);
  for (const std::string& node : heard()) answer(node, OrderKind::kill);
  for (const std::string& node : heard()) tell(node);
  ASSERT_EQ(state.phase, RunPhase::claim);
  take({.kind = FactKind::lead,
        .generation = 2,
        .number = 2,
        .text = to_text(state.settings),
        .digest = digest_of(*state.next)});
  EXPECT_EQ(state.generation(), 2);
  for (const char* node : {"a", "b"}) hear(node);
  pass(1);
  EXPECT_EQ(state.phase, RunPhase::start);
  EXPECT_TRUE(ordered("a", OrderKind::serve_store));
}

TEST_F(ControllerTest, WhereNobodyCanReachTheRunDirectoryNobodyIsOut) {
  start_run({"a", "b"});
  fault(Symptom::rank_ended, "b", {1});
  pass(1);
  for (int second = 0; second < 100; ++second) {
    for (const std::string& node : heard()) {
      take({.kind = FactKind::order_failed, .node = node, .evidence = "not there", .order = name_of(OrderKind::kill)});
    }
    pass(1);
  }
  EXPECT_EQ(state.phase, RunPhase::stop);
  EXPECT_EQ(state.nodes.at("a").out + state.nodes.at("b").out, "");
}

}  // namespace
}  // namespace megalith::resilience
