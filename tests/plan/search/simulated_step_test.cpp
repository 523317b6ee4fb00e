#include "plan/search/simulated_step.h"

#include <gtest/gtest.h>

#include <functional>

#include "plan/search/planned_runs.h"
#include "plan/step_time/some_runs.h"

namespace megalith::plan {
namespace {

using megalith::testing::planned_recipe;

// Layers alone, which all stages have as many of.
TEST(SimulatedStep, AnEvenPipelineIdlesAsTheoryHasIt) {
  BlockTimes blocks;
  blocks.layer.forward.compute = 1e-3;
  blocks.layer.backward.compute = 2e-3;
  RunFeatures run = testing::some_run();
  for (const int64_t chunks : {1, 2, 5}) {
    for (const int64_t micro_batches : {4, 8, 32, 256}) {
      run.chunks = chunks;
      run.global_batch = micro_batches * run.micro_batch * run.data;
      const parallel::Layout layout{.tensor = 4, .pipeline = 4, .chunks = chunks, .data = 4, .sequence_parallel = true};
      const StepParts parts = simulated_step(run, layout, fitted_constants(), blocks);
      const double stage = 10 * 3e-3;
      EXPECT_NEAR(parts.compute, static_cast<double>(micro_batches) * stage, 1e-9);
      EXPECT_NEAR(parts.imbalance, 0.0, 1e-9);
      EXPECT_NEAR(parts.bubble, 3 * stage / static_cast<double>(chunks), 1e-9) << chunks << " " << micro_batches;
    }
  }
}

TEST(SimulatedStep, OneGpuTakesTheSumOfItsOperations) {
  const SearchRequest request =
      planned_recipe("gpt3-1.3b", 1, "h200",
                     {"model.wrap_with_zero=false", "model.global_batch_size=8", "model.micro_batch_size=8",
                      "model.activations_checkpoint_granularity=null"});
  const PlannedLayout own = plan_as_is(request);
  EXPECT_NEAR(own.parts.compute, own.times.operations.all(), 1e-6 * own.parts.compute);
  EXPECT_NEAR(own.seconds(), own.parts.compute + own.parts.optimizer, 1e-12);
}

// Of Megalith's own runs, whose operations are rehearsed and whose pipelines are simulated.
TEST(SimulatedStep, BetterHardwareIsNeverSlower) {
  const std::vector<SearchRequest> requests{
      planned_recipe("gpt3-13b", 64, "h100"), planned_recipe("llama3.1-70b", 64, "a100"),
      planned_recipe("gpt3-6.7b", 16, "h200", {"model.fsdp=true", "model.pipeline_model_parallel_size=1"}),
      planned_recipe("llama3.1-8b", 64, "b200", {"model.context_parallel_size=4", "model.global_batch_size=256"}),
      planned_recipe("gpt3-175b", 256, "h100", {"model.fp8=true", "model.fp8_hybrid=true"})};
  using Improve = std::function<void(Cluster&)>;
  const std::vector<std::pair<const char*, Improve>> improvements{
      {"links", [](Cluster& c) { c.gpu.link_gb_s *= 1.5; }},
      {"network", [](Cluster& c) { c.network.gbit_per_gpu *= 2; }},
      {"memory", [](Cluster& c) { c.gpu.memory_tb_s *= 1.3; }},
      {"FLOPS", [](Cluster& c) {
         c.gpu.bf16_tflops *= 1.3;
         if (c.gpu.fp8_tflops) *c.gpu.fp8_tflops *= 1.3;
       }}};
  for (const SearchRequest& before : requests) {
    const PlannedLayout slower = plan_as_is(before);
    for (const auto& [what, improve] : improvements) {
      SearchRequest after = before;
      improve(after.cluster);
      const PlannedLayout faster = plan_as_is(after);
      EXPECT_LE(faster.seconds(), slower.seconds() * (1 + 1e-12)) << before.run.name << ", more " << what;
      EXPECT_EQ(faster.memory.total(), slower.memory.total());
    }
  }
}

}  // namespace
}  // namespace megalith::plan
