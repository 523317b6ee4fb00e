#include <gtest/gtest.h>

#include "tiny_model.h"

namespace megalith::model::testing {
namespace {

ModelConfig gpt3_175b() {
  return {.layers = 96,
          .hidden = 12288,
          .ffn = 49152,
          .heads = 96,
          .kv_heads = 96,
          .head_dim = 128,
          .vocabulary = 50257,
          .padded_vocabulary = 51200,
          .max_positions = 2048,
          .hidden_dropout = 0.1,
          .attention_dropout = 0.1,
          .compute = DType::bf16};
}

TEST(LayoutMemory, WeightsOfAllStagesAddUpToTheModel) {
  const StageRequest request{
      .config = gpt3_175b(),
      .layout =
          {.tensor = 4, .pipeline = 8, .chunks = 2, .data = 8, .sequence_parallel = true, .shards_optimizer = true},
      .batch = 1,
      .length = 2048,
      .micro_batches = 256};
  int64_t weights = 0;
  for (int64_t stage = 0; stage < 8; ++stage) weights += memory_of_stage(request, stage).bytes_of("weights");
  const int64_t parameters = logical_parameters(request.config).elements();
  const int64_t tied_copy = int64_t{51200} * 12288;
  // bf16; what is not cut by tensor parallelism (norms, output biases, positions) is on each of the four ranks.
  EXPECT_GT(4 * weights, 2 * (parameters + tied_copy));
  EXPECT_LT(4 * weights, 2.002 * static_cast<double>(parameters + tied_copy));
}

TEST(LayoutMemory, TheFirstStageHoldsTheMostActivations) {
  const StageRequest request{
      .config = gpt3_175b(),
      .layout = {.tensor = 8, .pipeline = 16, .data = 4, .sequence_parallel = true, .shards_optimizer = true},
      .batch = 1,
      .length = 2048,
      .micro_batches = 128};
  EXPECT_EQ(memory_of_worst_rank(request).stage, 0);
  EXPECT_GT(memory_of_stage(request, 0).bytes_of("activations"), memory_of_stage(request, 15).bytes_of("activations"));
}

TEST(LayoutMemory, RecomputeSavesMemory) {
  StageRequest request{
      .config = gpt3_175b(), .layout = {.tensor = 8, .pipeline = 8}, .batch = 1, .length = 2048, .micro_batches = 64};
  const int64_t none = memory_of_worst_rank(request).table.total();
  request.config.recompute = Recompute::selective;
  const int64_t selective = memory_of_worst_rank(request).table.total();
  request.config.recompute = Recompute::full;
  const int64_t full = memory_of_worst_rank(request).table.total();
  EXPECT_LT(selective, none);
  EXPECT_LT(full, selective);
}

}  // namespace
}  // namespace megalith::model::testing
