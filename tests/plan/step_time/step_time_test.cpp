#include "plan/step_time/step_time.h"

#include <gtest/gtest.h>

#include <functional>

#include "plan/step_time/some_runs.h"
#include "plan/step_time/wire_time.h"

namespace megalith::plan {
namespace {

using testing::some_run;

double seconds(const RunFeatures& run) {
  return step_time(run, fitted_constants()).total();
}

// A few runs that differ in what the model treats differently.
std::vector<RunFeatures> different_runs() {
  std::vector<RunFeatures> runs(6, some_run());
  runs[1].gpu = cost::Hardware().accelerator("a100");
  runs[1].attention = AttentionKernel::unfused;
  runs[1].dropout = true;
  runs[1].recompute = Recomputed::full;
  runs[2].fp8 = true;
  runs[2].tensor_overlaps = runs[2].data_overlaps = runs[2].pipeline_overlaps = true;
  runs[3].chunks = 1;
  runs[3].launch = KernelLaunch::blocking;
  runs[3].recompute = Recomputed::core_attention;
  runs[4].pipeline = runs[4].chunks = 1;
  runs[4].tensor = 1;
  runs[4].context = 2;
  runs[4].data = 32;
  runs[4].shard_group = 32;
  runs[4].sharding = Sharding::fsdp;
  runs[4].data_overlaps = true;
  runs[5].sharding = Sharding::none;
  runs[5].stage_layers = {9, 11, 11, 9};
  runs[5].chunks = 1;
  return runs;
}

void expect_never_slower(const std::function<void(RunFeatures&)>& improve) {
  for (RunFeatures run : different_runs()) {
    const double before = seconds(run);
    improve(run);
    EXPECT_LE(seconds(run), before * (1 + 1e-12));
  }
}

TEST(StepTime, BetterHardwareIsNeverSlower) {
  expect_never_slower([](RunFeatures& run) { run.gpu.memory_tb_s *= 1.5; });
  expect_never_slower([](RunFeatures& run) { run.gpu.link_gb_s *= 1.5; });
  expect_never_slower([](RunFeatures& run) { run.network.gbit_per_gpu *= 2; });
  expect_never_slower([](RunFeatures& run) {
    run.gpu.bf16_tflops *= 2;
    if (run.gpu.fp8_tflops) *run.gpu.fp8_tflops *= 2;
  });
}

// Calls that each take a round time, whatever moves.
std::shared_ptr<const comm::Wire> measured(double gather_s, double reduce_s, double exchange_s) {
  using comm::Operation;
  std::vector<comm::MeasuredCall> calls;
  for (const auto& [members, machines] : {std::pair{8, 1}, {16, 2}, {2, 2}}) {
    for (const int64_t bytes : {int64_t{1}, int64_t{1} << 36}) {
      calls.push_back({Operation::all_gather, members, machines, bytes, gather_s});
      calls.push_back({Operation::reduce_scatter, members, machines, bytes, reduce_s});
      calls.push_back({Operation::all_reduce, members, machines, bytes, gather_s + reduce_s});
      calls.push_back({Operation::exchange, members, machines, bytes, exchange_s});
    }
  }
  return std::make_shared<const comm::Wire>(comm::measured_wire("measured.csv", std::move(calls)));
}

TEST(StepTime, CallsTakeWhatWasMeasured) {
  RunFeatures run = some_run();
  run.wire = measured(1e-3, 2e-3, 4e-3);
  run.context = 2;
  run.data = 2;
  const BothPasses layer = layer_time(run, fitted_constants());
  EXPECT_NEAR(layer.forward.tensor, 2 * 1e-3 + 2 * 2e-3, 1e-9);
  EXPECT_NEAR(layer.backward.tensor, 4 * 1e-3 + 2 * 2e-3, 1e-9);
  EXPECT_NEAR(layer.forward.context, 1e-3, 1e-9);
  EXPECT_NEAR(layer.backward.context, 1e-3 + 2e-3, 1e-9);
  EXPECT_NEAR(message_time(run, fitted_constants()), 4e-3, 1e-9);
  const double weights = 100e6;  // three buckets
  EXPECT_NEAR(data_calls(run, fitted_constants(), weights).reduce, 3 * 2e-3, 1e-9);
  EXPECT_NEAR(data_calls(run, fitted_constants(), weights).gather, 3 * 1e-3, 1e-9);
  run.sequence_parallel = false;
  EXPECT_NEAR(layer_time(run, fitted_constants()).forward.tensor, 2 * 3e-3, 1e-9);
}

TEST(StepTime, FasterCallsAreNeverSlower) {
  for (RunFeatures run : different_runs()) {
    run.wire = measured(1e-3, 2e-3, 4e-3);
    const double before = seconds(run);
    run.wire = measured(0.9e-3, 1.5e-3, 2e-3);
    EXPECT_LE(seconds(run), before);
  }
}

TEST(StepTime, NothingIsNegative) {
  for (const RunFeatures& run : different_runs()) {
    ASSERT_EQ(layout_problem(run), "");
    const StepParts parts = step_time(run, fitted_constants());
    for (const double part : {parts.compute, parts.recompute, parts.tensor, parts.context, parts.imbalance,
                              parts.bubble, parts.messages, parts.data, parts.optimizer, parts.host, parts.jitter})
      EXPECT_GE(part, 0.0);
  }
}

TEST(StepTime, OneRankIsTheSumOfItsBlocks) {
  RunFeatures run = some_run();
  run.gpus = run.tensor = run.pipeline = run.chunks = run.data = run.shard_group = 1;
  run.sequence_parallel = false;
  run.global_batch = 2;
  run.launch = KernelLaunch::graphs;
  const BlockTimes blocks = block_times(run, fitted_constants());
  const StepParts parts = step_time(run, fitted_constants());
  EXPECT_NEAR(parts.compute, 40 * blocks.layer.total() + blocks.head.total() + blocks.embedding.total(),
              1e-9 * parts.compute);
  EXPECT_NEAR(parts.total(), parts.compute + parts.optimizer, 1e-12);
}

TEST(StepTime, BubbleOfEqualStagesIsThatOfTheory) {
  RunFeatures run = some_run();
  run.launch = KernelLaunch::graphs;
  const BlockTimes blocks = block_times(run, fitted_constants());
  const double stage = 10 * blocks.layer.total();
  const double slowest = stage + blocks.head.total();
  run.chunks = 1;
  EXPECT_NEAR(step_time(run, fitted_constants()).bubble, 3 * stage + blocks.embedding.total(), 1e-9);
  EXPECT_NEAR(step_time(run, fitted_constants()).imbalance,
              32 * (slowest - (4 * stage + blocks.head.total() + blocks.embedding.total()) / 4), 1e-9);
  run.chunks = 2;
  const double mean = (3 * stage + slowest + blocks.embedding.total()) / 4;
  EXPECT_NEAR(step_time(run, fitted_constants()).bubble, 3 * mean / 2, 1e-9);
}

TEST(StepTime, MicroBatchesAddUp) {
  RunFeatures run = some_run();
  const StepParts once = step_time(run, fitted_constants());
  run.global_batch *= 2;
  const StepParts twice = step_time(run, fitted_constants());
  EXPECT_NEAR(twice.compute, 2 * once.compute, 1e-9);
  EXPECT_NEAR(twice.bubble, once.bubble, 1e-9);
  EXPECT_NEAR(twice.optimizer, once.optimizer, 1e-12);
}

TEST(StepTime, FullRecomputeIsOneMoreForward) {
  RunFeatures run = some_run();
  run.launch = KernelLaunch::graphs;
  const BothPasses kept = layer_time(run, fitted_constants());
  run.recompute = Recomputed::full;
  const BothPasses again = layer_time(run, fitted_constants());
  EXPECT_DOUBLE_EQ(again.backward.recompute, kept.forward.compute);
  EXPECT_DOUBLE_EQ(again.backward.tensor, kept.backward.tensor + kept.forward.tensor);
}

}  // namespace
}  // namespace megalith::plan
