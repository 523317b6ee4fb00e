#include <gtest/gtest.h>

#include <cstdlib>

#include "parallel/layout_check.h"
#include "same_training.h"

// Memory is told by a rehearsal (plan/rehearsal.h): whatever the layout, a real step uses every byte of it and no more.

namespace megalith::train::testing {
namespace {

template <class T>
T pick(int64_t seed, int64_t what, const std::vector<T>& from) {
  return from[draw(seed, what, 77) % from.size()];
}

LayoutCase random_case(int64_t seed) {
  LayoutCase test{.config = pick(seed, 0, std::vector{gpt(), llama()})};
  model::ModelConfig& config = test.config;
  config.compute = pick(seed, 16, std::vector{DType::f32, DType::bf16});
  config.layers = pick<int64_t>(seed, 1, {4, 6, 8});
  config.recompute =
      pick<model::Recompute>(seed, 2, {model::Recompute::none, model::Recompute::selective, model::Recompute::full});
  config.hidden_dropout = pick(seed, 3, std::vector{0.0, 0.1});
  config.attention_dropout = config.hidden_dropout;
  parallel::Layout& layout = test.layout;
  layout.tensor = pick<int64_t>(seed, 4, {1, 1, 2});
  layout.pipeline = pick<int64_t>(seed, 5, {1, 1, 2, 4});
  layout.context = pick<int64_t>(seed, 6, {1, 1, 2});
  layout.data = pick<int64_t>(seed, 7, {1, 2, 3});
  layout.chunks = pick<int64_t>(seed, 8, {1, 1, 2, config.layers});
  layout.sequence_parallel = layout.tensor > 1 && draw(seed, 9, 77) % 2 == 0;
  layout.shards_optimizer = draw(seed, 10, 77) % 2 == 0;
  layout.shards_weights = draw(seed, 11, 77) % 3 == 0;
  if (draw(seed, 12, 77) % 3 == 0) layout.schedule = parallel::PipelineSchedule::zero_bubble;
  test.micro_batch = pick<int64_t>(seed, 13, {1, 2});
  test.global_batch = test.micro_batch * layout.data * pick<int64_t>(seed, 14, {1, 2, 4});
  test.reduces_in_bf16 = layout.replicas() > 1 && draw(seed, 15, 77) % 3 == 0;
  test.steps = 1;
  return test;
}

bool works(const LayoutCase& test) {
  constexpr int64_t kMostRanks = 8;
  if (test.layout.world() > kMostRanks) return false;
  return parallel::layout_problems(test.layout, {.ranks = test.layout.world(),
                                                 .layers = test.config.layers,
                                                 .heads = test.config.heads,
                                                 .kv_heads = test.config.kv_heads,
                                                 .ffn = test.config.ffn,
                                                 .padded_vocabulary = test.config.padded_vocabulary,
                                                 .length = test.length,
                                                 .micro_batch = test.micro_batch,
                                                 .global_batch = test.global_batch})
      .empty();
}

TEST(RandomLayouts, UseExactlyTheMemoryThatWasRehearsed) {
  const int wanted = std::getenv("MEGALITH_LONG_TESTS") == nullptr ? 20 : 300;
  int tried = 0;
  for (int64_t seed = 0; tried < wanted; ++seed) {
    const LayoutCase test = random_case(seed);
    if (!works(test)) continue;
    ++tried;
    SCOPED_TRACE(fmt::format("seed {}: {}", seed, to_string(test.layout)));
    for (const auto& [arena, bytes] : train_on(test).unused) EXPECT_EQ(bytes, 0) << arena;
  }
}

}  // namespace
}  // namespace megalith::train::testing
