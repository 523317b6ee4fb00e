#include <cstdlib>

#include "same_training.h"

// The layouts of the large recipes, with all their ranks and layers but narrow ones.

namespace megalith::train::testing {
namespace {

model::ModelConfig narrow_llama(int64_t layers) {
  model::ModelConfig config = llama();
  config.layers = layers;
  config.heads = 8;
  config.head_dim = 4;
  config.ffn = 32;
  return config;
}

// Among so many small weights are some whose gradient is hardly more than its rounding, of which Adam would make whole
// steps: its epsilon is large.
LayoutCase large_case(const model::ModelConfig& config, const parallel::Layout& layout) {
  return {
      .config = config, .layout = layout, .global_batch = layout.pipeline, .length = 8, .steps = 2, .epsilon = 1e-3};
}

TEST(LargeLayouts, Llama126LayersOnTP8PP18VP7) {
  if (std::getenv("MEGALITH_LONG_TESTS") == nullptr) GTEST_SKIP() << "144 threads: set MEGALITH_LONG_TESTS";
  expect_same_training(
      large_case(narrow_llama(126), {.tensor = 8, .pipeline = 18, .chunks = 7, .sequence_parallel = true}));
}

TEST(LargeLayouts, Llama42LayersOnTP4PP6VP7) {
  expect_same_training(
      large_case(narrow_llama(42), {.tensor = 4, .pipeline = 6, .chunks = 7, .sequence_parallel = true}));
}

TEST(LargeLayouts, Gpt96LayersOnTP4PP8VP12) {
  model::ModelConfig config = gpt();
  config.layers = 96;
  expect_same_training(large_case(config, {.tensor = 4, .pipeline = 8, .chunks = 12, .sequence_parallel = true}));
}

}  // namespace
}  // namespace megalith::train::testing
