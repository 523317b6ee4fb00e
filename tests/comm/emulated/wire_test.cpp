#include "comm/emulated/wire.h"

#include <gtest/gtest.h>

#include <limits>

#include "comm/emulated/wires.h"
#include "expect_error.h"

namespace megalith::comm {
namespace {

double seconds_of(const Wire& wire, const Group& group, const Call& call) {
  return seconds_alone(wire, cost_of(wire, group, call));
}

constexpr int64_t kMega = 1000000;

TEST(Wire, ACallInsideAMachineIsItsLatencyAndItsBytes) {
  const Wire wire = wire_of_eights();
  const Group four = group_of("tensor", {4, 5, 6, 7});
  EXPECT_DOUBLE_EQ(seconds_of(wire, four, call_of(Operation::all_gather, 100 * kMega)), 10e-6 + 300e6 / 300e9);
  EXPECT_DOUBLE_EQ(seconds_of(wire, four, call_of(Operation::reduce_scatter, 400 * kMega)), 10e-6 + 300e6 / 300e9);
  EXPECT_DOUBLE_EQ(seconds_of(wire, four, call_of(Operation::all_reduce, 400 * kMega)), 10e-6 + 600e6 / 300e9);
  EXPECT_DOUBLE_EQ(seconds_of(wire, four, call_of(Operation::broadcast, 300 * kMega)), 10e-6 + 300e6 / 300e9);
  EXPECT_DOUBLE_EQ(seconds_of(wire, four, call_of(Operation::barrier, 0)), 10e-6);
  EXPECT_DOUBLE_EQ(seconds_of(wire, four, call_of(Operation::all_gather, 1)), 10e-6 + 3 / 300e9);
}

TEST(Wire, BetweenMachinesEachRankHasANicAndEachMachineIsAHop) {
  const Wire wire = wire_of_eights();
  const Group alone = group_of("data", {0, 8, 16, 24});
  EXPECT_DOUBLE_EQ(seconds_of(wire, alone, call_of(Operation::all_gather, 40 * kMega)),
                   15e-6 + 3 * 5e-6 + 120e6 / 40e9);
  EXPECT_DOUBLE_EQ(seconds_of(wire, alone, call_of(Operation::all_reduce, 40 * kMega)), 15e-6 + 6 * 5e-6 + 60e6 / 40e9);
  const Group pairs = group_of("data", {0, 4, 8, 12});
  EXPECT_DOUBLE_EQ(seconds_of(wire, pairs, call_of(Operation::all_gather, 40 * kMega)), 15e-6 + 5e-6 + 120e6 / 80e9);
  // Eight NICs are faster than the links inside.
  std::vector<int> all;
  for (int rank = 0; rank < 16; ++rank) all.push_back(rank);
  EXPECT_DOUBLE_EQ(seconds_of(wire, group_of("world", all), call_of(Operation::all_gather, 20 * kMega)),
                   15e-6 + 5e-6 + 300e6 / 300e9);
  EXPECT_DOUBLE_EQ(seconds_of(wire, pairs, call_of(Operation::all_to_all, 80 * kMega)), 15e-6 + 40e6 / 40e9);
}

TEST(Wire, AnExchangeIsItsLargerDirectionOverEachKindOfLink) {
  const Wire wire = wire_of_eights();
  const Group stages = group_of("pipeline", {0, 4, 8, 12}, 1);
  EXPECT_DOUBLE_EQ(seconds_of(wire, stages, exchange_of({{2, 40 * kMega}}, {})), 15e-6 + 40e6 / 40e9);
  EXPECT_DOUBLE_EQ(seconds_of(wire, stages, exchange_of({{2, 40 * kMega}}, {{2, 20 * kMega}})), 15e-6 + 40e6 / 40e9);
  EXPECT_DOUBLE_EQ(seconds_of(wire, stages, exchange_of({{2, 40 * kMega}, {3, 40 * kMega}}, {})), 15e-6 + 80e6 / 40e9);
  EXPECT_DOUBLE_EQ(seconds_of(wire, stages, exchange_of({{0, 30 * kMega}}, {})), 10e-6 + 30e6 / 300e9);
  const CallCost both = cost_of(wire, stages, exchange_of({{2, 40 * kMega}}, {{0, 30 * kMega}}));
  EXPECT_EQ(both.bytes, (std::array<double, 2>{30e6, 40e6}));
}

TEST(Wire, EachPieceOfASplitCallPaysItsLatency) {
  const Wire wire = wire_of_eights();
  const Group four = group_of("tensor", {0, 1, 2, 3});
  const double whole = seconds_of(wire, four, call_of(Operation::all_gather, 100 * kMega));
  const double quarter = seconds_of(wire, four, call_of(Operation::all_gather, 25 * kMega));
  EXPECT_NEAR(4 * quarter - whole, 3 * 10e-6, 1e-12);
}

TEST(Wire, SmallCallsHoldFewMultiprocessors) {
  const Wire wire = wire_of_eights();
  const Group four = group_of("tensor", {0, 1, 2, 3});
  EXPECT_EQ(cost_of(wire, four, call_of(Operation::all_gather, 8)).blocks, 1);
  EXPECT_EQ(cost_of(wire, four, call_of(Operation::all_gather, 32 << 10)).blocks, 3);
  EXPECT_EQ(cost_of(wire, four, call_of(Operation::all_gather, 100 * kMega)).blocks, 16);
  EXPECT_EQ(cost_of(wire, group_of("pipeline", {0, 8}), exchange_of({{1, 50 * kMega}}, {})).blocks, 2);
}

TEST(Wire, SpansCountMachinesAndTheFewestRanksOnOne) {
  const GroupSpan span = span_of({6, 7, 8, 9, 10, 16}, 8);
  EXPECT_EQ(span.members, 6);
  EXPECT_EQ(span.machines, 3);
  EXPECT_EQ(span.ranks_on_machine, 1);
  EXPECT_EQ(span_of({0, 71}, 72).machines, 1);
}

Wire cluster() {
  return measured_wire("cluster", {{Operation::all_gather, 8, 1, 8, 20e-6},
                                   {Operation::all_gather, 8, 1, 10 * kMega, 200e-6},
                                   {Operation::all_gather, 8, 1, 1000 * kMega, 20e-3},
                                   {Operation::all_gather, 16, 2, 8, 30e-6},
                                   {Operation::all_gather, 16, 2, 100 * kMega, 6e-3},
                                   {Operation::exchange, 2, 2, 8, 16e-6},
                                   {Operation::exchange, 2, 2, 40 * kMega, 1e-3}});
}

TEST(Wire, AMeasuredWireHasTheRatesThatCallsReached) {
  const Wire wire = cluster();
  EXPECT_EQ(wire.ranks_per_machine, 8);
  EXPECT_DOUBLE_EQ(wire.link(LinkKind::inside).bytes_per_second, 7 * 10e6 / 200e-6);
  EXPECT_DOUBLE_EQ(wire.link(LinkKind::between).bytes_per_second, 40e6 / 1e-3);
  EXPECT_NO_THROW(check_wire(wire));
}

TEST(Wire, MeasuredCallsLastAsTheyWereMeasured) {
  const Wire wire = cluster();
  const Group eight = group_of("tensor", {0, 1, 2, 3, 4, 5, 6, 7});
  EXPECT_DOUBLE_EQ(seconds_of(wire, eight, call_of(Operation::all_gather, 8)), 20e-6);
  EXPECT_DOUBLE_EQ(seconds_of(wire, eight, call_of(Operation::all_gather, 10 * kMega)), 200e-6);
  EXPECT_DOUBLE_EQ(seconds_of(wire, eight, call_of(Operation::all_gather, 1000 * kMega)), 20e-3);
  EXPECT_DOUBLE_EQ(seconds_of(wire, eight, call_of(Operation::all_gather, 1)), 20e-6);
  // Halfway in the size's logarithm, halfway in the time's; and beyond the largest at its rate.
  EXPECT_NEAR(seconds_of(wire, eight, call_of(Operation::all_gather, 100 * kMega)), 2e-3, 1e-9);
  EXPECT_NEAR(seconds_of(wire, eight, call_of(Operation::all_gather, 2000 * kMega)), 40e-3, 1e-9);
  EXPECT_NEAR(seconds_of(wire, group_of("pipeline", {3, 11}), exchange_of({{1, 40 * kMega}}, {})), 1e-3, 1e-12);
  std::vector<int> all;
  for (int rank = 0; rank < 16; ++rank) all.push_back(rank);
  EXPECT_NEAR(seconds_of(wire, group_of("world", all), call_of(Operation::all_gather, 100 * kMega)), 6e-3, 1e-12);
}

TEST(Wire, AGroupThatWasNotMeasuredIsLikeTheNearestThatMovesAsMuch) {
  const Wire wire = cluster();
  // Three others' bytes instead of seven's.
  EXPECT_NEAR(seconds_of(wire, group_of("tensor", {0, 1, 2, 3}), call_of(Operation::all_gather, 70 * kMega / 3)),
              200e-6, 1e-9);
}

TEST(Wire, AMeasuredRingOfMessagesHasOneBetweenTwoMachines) {
  const Wire wire =
      measured_wire("ring", {{Operation::exchange, 16, 2, 8, 16e-6}, {Operation::exchange, 16, 2, 40 * kMega, 1e-3}});
  EXPECT_DOUBLE_EQ(wire.link(LinkKind::between).bytes_per_second, 40e9);
  EXPECT_NEAR(seconds_of(wire, group_of("pipeline", {3, 11}), exchange_of({{1, 40 * kMega}}, {})), 1e-3, 1e-12);
}

TEST(Wire, SaysWhatWasNotMeasured) {
  const Wire wire = cluster();
  expect_error(ErrorKind::user, {"'cluster'", "no all_reduce inside a machine", "megalith bench comm"}, [&] {
    seconds_of(wire, group_of("tensor", {0, 1}), call_of(Operation::all_reduce, 8));
  });
  expect_error(ErrorKind::user, {"no exchange inside a machine"}, [&] {
    seconds_of(wire, group_of("pipeline", {0, 1}), exchange_of({{1, 8}}, {}));
  });
}

TEST(Wire, RefusesAGroupThatNeedsALinkWhichIsNotThere) {
  Wire wire = wire_of_eights();
  wire.link(LinkKind::between) = {};
  EXPECT_NO_THROW(check_group(wire, group_of("tensor", {0, 7})));
  expect_error(ErrorKind::user, {"'eights' has no link between machines", "group 'data'", "2 ranks on 2 machines of 8"},
               [&] {
                 check_group(wire, group_of("data", {7, 8}));
               });
  wire = wire_of_eights();
  wire.link(LinkKind::inside) = {};
  EXPECT_NO_THROW(check_group(wire, group_of("data", {7, 8})));
  expect_error(ErrorKind::user, {"no link inside a machine"}, [&] { check_group(wire, group_of("tensor", {0, 7})); });
  expect_error(ErrorKind::user, {"no link inside a machine"}, [&] {
    check_group(wire, group_of("tensor", {0, 1, 8}));
  });
}

TEST(Wire, RefusesNumbersThatCannotBe) {
  EXPECT_NO_THROW(check_wire(wire_of_eights()));
  expect_error(ErrorKind::user, {"'nothing'", "bandwidth of 0"}, [] { check_wire({.name = "nothing"}); });
  for (const double bad : {-1.0, std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity()}) {
    Wire wire = wire_of_eights();
    wire.link(LinkKind::between).bytes_per_second = bad;
    expect_error(ErrorKind::user, {"'eights' between machines"}, [&] { check_wire(wire); });
    expect_error(ErrorKind::user, {"all_gather of 8 bytes by 4 ranks on 1 machines", "cannot be"}, [&] {
      measured_wire("cluster", {{Operation::all_gather, 4, 1, 8, bad}});
    });
  }
  Wire wire = wire_of_eights();
  wire.ranks_per_machine = 0;
  expect_error(ErrorKind::user, {"0 ranks inside a machine"}, [&] { check_wire(wire); });
}

}  // namespace
}  // namespace megalith::comm
