#include "resilience/monitor/monitor_logic.h"

#include <gtest/gtest.h>

#include "core/error.h"

namespace megalith::resilience {
namespace {

class ScriptedHost final : public NodeHost {
 public:
  int64_t newest_term() const override {
    if (is_gone) throw Error(ErrorKind::io, "the run directory is not there");
    return term;
  }
  std::optional<Roster> newest_roster() const override { return roster; }
  std::vector<RankReport> processes(bool with_proc) override {
    asked_for_proc = with_proc;
    return {};
  }
  void start_rank(const Roster&, int64_t rank, const Place& store, const std::vector<Holder>&) override {
    if (fails) throw Error(ErrorKind::io, "cannot fork");
    started.push_back(rank);
    store_port = store.port;
  }
  Place serve_store(const Roster&) override { return {.address = "10.0.0.1", .port = 4711, .secret = "s"}; }
  void kill_up_to(int64_t generation) override { killed.push_back(generation); }
  bool is_clear_of(int64_t) override { return is_clear; }
  void ask_to_stop(int64_t generation) override { asked_to_stop = generation; }
  std::vector<Holding> holdings() override { return {{.step = 5, .parts = 1, .held = {0}}}; }
  Place holder_place() override { return {}; }
  CheckOutcome check(std::string& evidence) override {
    evidence = "nobody knows";
    return CheckOutcome::unknown;
  }

  int64_t term = 2;
  bool is_gone = false;
  bool fails = false;
  bool is_clear = true;
  bool asked_for_proc = false;
  std::optional<Roster> roster;
  std::vector<int64_t> started;
  std::vector<int64_t> killed;
  int64_t store_port = 0;
  int64_t asked_to_stop = 0;
};

class MonitorLogicTest : public ::testing::Test {
 protected:
  MonitorLogicTest() {
    host.roster = Roster{.run = "run-1",
                         .term = 2,
                         .generation = 3,
                         .world_size = 4,
                         .ranks_per_node = 2,
                         .nodes = {{.node = "a", .index = 0}, {.node = "b", .index = 1}},
                         .store_node = "a"};
  }

  Order order(OrderKind kind, int64_t sequence, int64_t term = 2) const {
    return {.header = {.run = "run-1", .term = term, .generation = 3, .sequence = sequence, .sender = "supervisor"},
            .kind = kind,
            .roster_digest = digest_of(*host.roster),
            .store = {.address = "10.0.0.1", .port = 4711, .secret = "s"}};
  }
  Outcome outcome() { return logic.report().result->outcome; }

  ScriptedHost host;
  MonitorLogic logic{{.run = "run-1", .node = "b", .address = "10.0.0.2", .boot_id = "boot", .session = 7}, host};
};

TEST_F(MonitorLogicTest, StartsItsRanksOfTheNewestRoster) {
  logic.take(order(OrderKind::start, 1));
  EXPECT_EQ(host.started, (std::vector<int64_t>{2, 3}));
  EXPECT_EQ(host.store_port, 4711);
  EXPECT_TRUE(logic.poll()) << "the result leaves at once";
  const Report report = logic.report();
  EXPECT_EQ(report.result->outcome, Outcome::done);
  EXPECT_EQ(report.header.generation, 3);
  EXPECT_EQ(report.header.term, 2);
}

TEST_F(MonitorLogicTest, AnOrderIsCarriedOutOnce) {
  logic.take(order(OrderKind::start, 2));
  logic.take(order(OrderKind::start, 2));
  logic.take(order(OrderKind::kill, 1));  // late: given before the start
  EXPECT_EQ(host.started.size(), 2U);
  EXPECT_TRUE(host.killed.empty());
  EXPECT_EQ(logic.refused(), 1);
}

TEST_F(MonitorLogicTest, OldTermsAreRefused) {
  logic.take(order(OrderKind::greet, 1, 5));
  logic.take(order(OrderKind::kill, 9, 4));
  EXPECT_TRUE(host.killed.empty()) << "a higher term was heard";
  host.term = 6;
  logic.take(order(OrderKind::kill, 2, 5));
  EXPECT_TRUE(host.killed.empty()) << "a higher term is in the run directory, though nobody has spoken yet";
  logic.take(order(OrderKind::kill, 1, 6));
  EXPECT_EQ(host.killed, std::vector<int64_t>{3});
  EXPECT_EQ(logic.refused(), 2);
}

TEST_F(MonitorLogicTest, OtherRunsAndProtocolsAreRefused) {
  Order foreign = order(OrderKind::kill, 1);
  foreign.header.run = "run-2";
  logic.take(foreign);
  Order future = order(OrderKind::kill, 1);
  future.header.protocol = kProtocol + 1000;
  logic.take(future);
  Order minor = order(OrderKind::kill, 1);
  minor.header.protocol = kProtocol + 1;
  logic.take(minor);
  EXPECT_EQ(host.killed.size(), 1U);
  EXPECT_EQ(logic.refused(), 2);
}

TEST_F(MonitorLogicTest, OnlyTheRosterInTheRunDirectoryCounts) {
  Order start = order(OrderKind::start, 1);
  start.roster_digest = "0123456789abcdef";
  logic.take(start);
  EXPECT_EQ(outcome(), Outcome::refused);
  start = order(OrderKind::start, 2);
  start.header.generation = 2;
  logic.take(start);
  EXPECT_EQ(outcome(), Outcome::refused);
  host.roster->nodes[1].node = "c";
  logic.take(order(OrderKind::start, 3));
  EXPECT_EQ(outcome(), Outcome::refused);
  EXPECT_NE(logic.report().result->reason.find("'b' has no ranks"), std::string::npos);
  const Order last = order(OrderKind::start, 4);
  host.roster.reset();
  logic.take(last);
  EXPECT_EQ(outcome(), Outcome::refused);
  EXPECT_TRUE(host.started.empty());
}

TEST_F(MonitorLogicTest, WithoutTheRunDirectoryNothingIsChanged) {
  host.is_gone = true;
  logic.take(order(OrderKind::kill, 1));
  EXPECT_TRUE(host.killed.empty());
  EXPECT_EQ(outcome(), Outcome::failed) << "the supervisor orders it anew";
  host.is_gone = false;
  logic.take(order(OrderKind::kill, 1));
  EXPECT_TRUE(host.killed.empty()) << "that one has failed";
  logic.take(order(OrderKind::kill, 2));
  EXPECT_EQ(outcome(), Outcome::done);
}

TEST_F(MonitorLogicTest, AKillIsDoneWhenNothingIsLeft) {
  host.is_clear = false;
  logic.take(order(OrderKind::kill, 1));
  logic.poll();
  EXPECT_FALSE(logic.report().result);
  host.is_clear = true;
  EXPECT_TRUE(logic.poll());
  EXPECT_EQ(outcome(), Outcome::done);
}

TEST_F(MonitorLogicTest, WhatCannotBeDoneIsSaid) {
  host.fails = true;
  logic.take(order(OrderKind::start, 1));
  const Report report = logic.report();
  EXPECT_EQ(report.result->outcome, Outcome::failed);
  EXPECT_EQ(report.result->reason, "cannot fork");
}

TEST_F(MonitorLogicTest, TheStoreIsServedWhereTheRosterSays) {
  logic.take(order(OrderKind::serve_store, 1));
  EXPECT_EQ(outcome(), Outcome::refused);
  host.roster->store_node = "b";
  logic.take(order(OrderKind::serve_store, 2));
  EXPECT_EQ(logic.report().store->port, 4711);
}

TEST_F(MonitorLogicTest, AnswersStandInReports) {
  logic.take(order(OrderKind::tell, 1));
  Report report = logic.report();
  EXPECT_TRUE(report.tells_holdings);
  EXPECT_EQ(report.holdings.size(), 1U);
  logic.take(order(OrderKind::check, 2));
  report = logic.report();
  EXPECT_FALSE(report.tells_holdings);
  EXPECT_EQ(report.check, CheckOutcome::unknown);
  EXPECT_EQ(report.check_evidence, "nobody knows");
  logic.take(order(OrderKind::inspect, 3));
  logic.report();
  EXPECT_TRUE(host.asked_for_proc);
  logic.report();
  EXPECT_FALSE(host.asked_for_proc) << "once";
}

TEST_F(MonitorLogicTest, RepeatedSignalsChangeNothing) {
  logic.request_stop(30);
  logic.request_stop(3);
  EXPECT_TRUE(logic.report().stop_requested);
  EXPECT_EQ(logic.report().stop_grace, 30);
}

TEST_F(MonitorLogicTest, EndsWhenTheRunIsOver) {
  Order dismissal = order(OrderKind::dismiss, 1);
  dismissal.session = 8;
  logic.take(dismissal);
  EXPECT_FALSE(logic.exit_code()) << "another process of that name was meant";
  Order finish = order(OrderKind::finish, 1);
  finish.exit_code = 75;
  logic.take(finish);
  EXPECT_EQ(logic.exit_code(), 75);
}

}  // namespace
}  // namespace megalith::resilience
