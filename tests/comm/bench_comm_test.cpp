#include "comm/bench_comm.h"

#include <gtest/gtest.h>

#include <set>

#include "comm/collective_cases.h"
#include "comm/local/local_world.h"
#include "expect_error.h"

namespace megalith::comm {
namespace {

TEST(BenchComm, MeasuresEveryOperationAtEverySize) {
  for (const int ranks : {1, 3}) {
    run_local_ranks(ranks, [&](World& world) {
      CpuStream stream;
      const auto group = world.make_world_group();
      const CommBench bench{.least_bytes = 4, .most_bytes = 4096, .factor = 32, .seconds = 0.001};
      const auto timings = bench_comm(*group, stream, bench);
      EXPECT_EQ(timings.size(), 6U * 3U + 1U);
      std::set<Operation> operations;
      for (const CommTiming& timing : timings) {
        operations.insert(timing.operation);
        EXPECT_GE(timing.seconds, 0.0);
        EXPECT_EQ(timing.bytes_per_second > 0.0, ranks > 1 && timing.operation != Operation::barrier);
      }
      EXPECT_EQ(operations.size(), static_cast<size_t>(kOperations));
      expect_parts(describe(timings, ranks), {"all_reduce", "exchange", "GB/s"});
    });
  }
}

TEST(BenchComm, EveryMemberGetsAnElement) {
  run_local_ranks(5, [&](World& world) {
    CpuStream stream;
    const auto group = world.make_world_group();
    const CommBench bench{.least_bytes = 4, .most_bytes = 4, .seconds = 0.001};
    EXPECT_EQ(bench_comm(*group, stream, bench).front().bytes, 5 * 4);
  });
}

TEST(BenchComm, RefusesSizesThatDoNotGrow) {
  run_local_ranks(1, [](World& world) {
    CpuStream stream;
    const auto group = world.make_world_group();
    error_of(ErrorKind::user, [&] { bench_comm(*group, stream, {.factor = 1}); });
  });
}

}  // namespace
}  // namespace megalith::comm
