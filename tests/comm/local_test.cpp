#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <limits>
#include <mutex>
#include <optional>
#include <thread>

#include "comm/collective_cases.h"
#include "comm/host/reduce.h"
#include "comm/local/local_world.h"
#include "core/clock.h"
#include "expect_error.h"

namespace megalith::comm {
namespace {

class Ranks : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Local, Ranks, testing::Values(1, 2, 3, 4, 5));

TEST_P(Ranks, EveryCollectiveOfEveryTypeAndSize) {
  run_local_ranks(GetParam(), check_world);
}

TEST_P(Ranks, SumsAreTheSameBitsOnEveryRankAndInEveryRun) {
  for (const DType dtype : {DType::f32, DType::bf16, DType::f64}) {
    std::mutex mutex;
    std::vector<std::vector<std::byte>> results;
    for (int run = 0; run < 3; ++run) {
      run_local_ranks(GetParam(), [&](World& world) {
        const auto group = world.make_world_group();
        auto bytes = sum_of_awkward_values(*group, dtype, 1003);
        const std::lock_guard lock(mutex);
        results.push_back(std::move(bytes));
      });
    }
    for (const auto& result : results) EXPECT_EQ(result, results.front());
  }
}

TEST(Local, BfloatsAreAddedInFp32) {
  // 256 + 1 rounds back to 256 in bf16: adding one by one in bf16 would lose every one of them.
  run_local_ranks(5, [](World& world) {
    CpuStream stream;
    Values values(DType::bf16, 1);
    values.set(0, world.rank() == 0 ? 256.0 : 1.0);
    const auto group = world.make_world_group();
    group->all_reduce(stream, values.tensor()).wait(stream);
    EXPECT_EQ(values.get(0), 260.0);
  });
}

TEST(Local, AMaximumWithNanIsNan) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const float first[] = {1.0F, nan, 3.0F};
  const float second[] = {nan, 2.0F, 4.0F};
  float result[3];
  const std::vector<const void*> pieces = {first, second};
  reduce(Reduction::max, DType::f32, pieces, result, 3);
  EXPECT_TRUE(std::isnan(result[0]));
  EXPECT_TRUE(std::isnan(result[1]));
  EXPECT_EQ(result[2], 4.0F);
}

TEST(Local, CallsOfAGroupOverlapWithTheCallerAndKeepTheirOrder) {
  run_local_ranks(3, [](World& world) {
    CpuStream stream;
    const auto group = world.make_world_group();
    Values values(DType::f64, 100);
    values.set(0, 1.0);
    std::vector<Pending> pending;
    for (int i = 0; i < 5; ++i) pending.push_back(group->all_reduce(stream, values.tensor()));
    pending.back().wait(stream);
    EXPECT_EQ(values.get(0), 243.0);
  });
}

TEST(Local, GroupsThatRanksUseInDifferentOrderDoNotWaitForEachOther) {
  run_local_ranks(2, [](World& world) {
    CpuStream stream;
    const auto first = world.make_group("first", {0, 1});
    const auto second = world.make_group("second", {0, 1});
    Communicator* order[] = {first.get(), second.get()};
    if (world.rank() == 1) std::swap(order[0], order[1]);
    const Pending one = order[0]->barrier(stream);
    const Pending two = order[1]->barrier(stream);
    one.wait(stream);
    two.wait(stream);
  });
}

TEST(Local, AGroupOfOneSendsNothingAndCountsNothing) {
  run_local_ranks(1, [](World& world) {
    CpuStream stream;
    const auto group = world.make_world_group();
    Values values(DType::f32, 4);
    group->all_reduce(stream, values.tensor()).wait(stream);
    group->barrier(stream).wait(stream);
    EXPECT_EQ(group->traffic(Operation::all_reduce).calls, 0);
    EXPECT_EQ(group->log().describe(), "");
  });
}

TEST(Local, TrafficIsCounted) {
  run_local_ranks(4, [](World& world) {
    CpuStream stream;
    const auto group = world.make_world_group();
    Values values(DType::f32, 8);
    group->all_reduce(stream, values.tensor()).wait(stream);
    group->all_reduce(stream, values.tensor()).wait(stream);
    EXPECT_EQ(group->traffic(Operation::all_reduce).calls, 2);
    EXPECT_EQ(group->traffic(Operation::all_reduce).bytes, 64);
    EXPECT_EQ(wire_bytes(Operation::all_reduce, 64, 4), 96.0);
    EXPECT_EQ(wire_bytes(Operation::all_gather, 64, 4), 192.0);
  });
}

TEST(Local, ATimeOutNamesGroupCallAndWhoDidNotArrive) {
  std::atomic<int> ended{0};
  run_local_ranks(4, [&](World& world) {
    CpuStream stream;
    const auto group = world.make_group("tp", {0, 1, 2, 3});
    group->barrier(stream).wait(stream);
    if (world.rank() == 2) {  // alive, but busy elsewhere
      while (ended < 3) std::this_thread::sleep_for(std::chrono::milliseconds(5));
      return;
    }
    Values values(DType::f32, 10);
    const double begin = monotonic_seconds();
    const std::string message = error_of(
        ErrorKind::comm, [&] { group->all_reduce(stream, values.tensor(), Reduction::sum, 0.3).wait(stream); });
    EXPECT_LT(monotonic_seconds() - begin, 30.0);
    expect_parts(message, {"group 'tp'", "all_reduce #1", "40 bytes", "within 0.3 s: rank 2 (", "did not arrive",
                           "barrier #0, 0 bytes, done in"});
    EXPECT_EQ(message.find("rank 2 ("), message.rfind("rank 2 ("));
    expect_parts(error_of(ErrorKind::comm, [&] { group->barrier(stream).wait(stream); }), {"'tp' failed before"});
    ++ended;
  });
}

// Programs need not read the message.
TEST(Local, AFailureHasTheGroupTheCallAndTheRanksOfTheWorld) {
  std::atomic<bool> ended{false};
  run_local_ranks(4, [&](World& world) {
    if (world.rank() == 0) return;  // gone, of another group
    CpuStream stream;
    const auto group = world.make_group("dp", {1, 2, 3});
    if (world.rank() != 1) {
      while (!ended) std::this_thread::sleep_for(std::chrono::milliseconds(5));
      return;
    }
    Values values(DType::f32, 10);
    std::optional<Error> first;
    for (int call = 0; call < 2; ++call) {
      try {
        group->all_reduce(stream, values.tensor(), Reduction::sum, 0.2).wait(stream);
      } catch (const Error& error) {
        if (call == 0) first.emplace(error);
        EXPECT_EQ(error.facts().ranks, (std::vector<int>{2, 3}));
        EXPECT_EQ(error.facts().group, "dp");
        EXPECT_EQ(error.facts().call, "all_reduce");
      }
    }
    ended = true;
    EXPECT_TRUE(first);
  });
}

TEST(Local, ARankThatIsGoneIsNoticedAtOnce) {
  run_local_ranks(3, [](World& world) {
    if (world.rank() == 1) return;
    CpuStream stream;
    const auto group = world.make_world_group();
    const double begin = monotonic_seconds();
    Values values(DType::f32, 10);
    const auto call = [&] { group->all_reduce(stream, values.tensor(), Reduction::sum, 60.0).wait(stream); };
    expect_parts(error_of(ErrorKind::comm, call), {"rank 1 (", "is gone"});
    EXPECT_LT(monotonic_seconds() - begin, 10.0);
  });
}

TEST(Local, WhoFailsBecauseOfAnotherNamesThatOther) {
  std::atomic<bool> ended{false};
  run_local_ranks(3, [&](World& world) {
    CpuStream stream;
    const auto group = world.make_group("pp", {0, 1, 2});
    Values values(DType::f32, 4);
    if (world.rank() == 2) {
      while (!ended) std::this_thread::sleep_for(std::chrono::milliseconds(5));
      return;
    }
    const double deadline = world.rank() == 1 ? 0.2 : 30.0;
    const auto call = [&] {
      group->exchange(stream, {}, {{world.rank() + 1, values.tensor()}}, deadline).wait(stream);
    };
    const std::string message = error_of(ErrorKind::comm, call);
    if (world.rank() == 1) return;
    ended = true;
    expect_parts(message, {"rank 1 (", "is gone; rank 1 had failed in exchange #0 of group 'pp'", "rank 2 ("});
  });
}

TEST(Local, RanksThatDisagreeAboutACallRunIntoTheDeadline) {
  run_local_ranks(2, [](World& world) {
    CpuStream stream;
    const auto group = world.make_world_group();
    Values values(DType::f32, world.rank() == 0 ? 10 : 12);
    const auto call = [&] { group->all_reduce(stream, values.tensor(), Reduction::sum, 0.2).wait(stream); };
    error_of(ErrorKind::comm, call);
  });
}

TEST(Local, BadTensorsAreRefused) {
  run_local_ranks(2, [](World& world) {
    CpuStream stream;
    const auto group = world.make_world_group();
    Values values(DType::f32, 6);
    const Tensor matrix = values.tensor().view({2, 3});
    const auto refused = [](auto&& body) { error_of(ErrorKind::internal, body); };
    refused([&] { (void)group->all_reduce(stream, matrix.slice_cols(0, 2)); });
    refused([&] { (void)group->all_reduce(stream, Tensor(values.tensor().data, DType::f32, {6}, Device::cuda)); });
    refused([&] { (void)group->all_gather(stream, values.tensor(), values.tensor()); });
    refused([&] { (void)group->broadcast(stream, values.tensor(), 2); });
    refused([&] { (void)group->exchange(stream, {{world.rank(), values.tensor()}}, {}); });
    refused([&] { (void)group->all_to_all(stream, values.tensor(), matrix.slice_rows(0, 1)); });
  });
}

TEST(Local, BadGroupsAreRefused) {
  run_local_ranks(2, [](World& world) {
    const auto message = [&](std::vector<int> ranks) {
      return error_of(ErrorKind::user, [&] { world.make_group("dp", ranks); });
    };
    expect_parts(message({0, 2}), {"'dp'", "rank 2", "2 ranks"});
    expect_parts(message({0, 0, 1}), {"twice"});
    expect_parts(message({1 - world.rank()}), {"not a member"});
  });
}

TEST(Local, ManyThreadRanks) {
  run_local_ranks(64, [](World& world) {
    CpuStream stream;
    const auto group = world.make_world_group();
    Values values(DType::i64, 3);
    for (int64_t i = 0; i < 3; ++i) values.set(i, 1.0);
    group->all_reduce(stream, values.tensor()).wait(stream);
    EXPECT_EQ(values.get(2), 64.0);
  });
}

}  // namespace
}  // namespace megalith::comm
