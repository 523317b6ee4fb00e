#include <gtest/gtest.h>

#include <cmath>

#include "layout_run.h"
#include "parallel/layout_check.h"

// Law 1: the layout never changes the result. Each rank is a thread here; scripts/check-layouts does the same with
// processes.

namespace megalith::train::testing {
namespace {

model::ModelConfig gpt() {
  return {.layers = 4,
          .hidden = 32,
          .ffn = 64,
          .heads = 4,
          .kv_heads = 4,
          .head_dim = 8,
          .vocabulary = 50,
          .padded_vocabulary = 56,
          .max_positions = 32,
          .init_std = 0.05,
          .hidden_dropout = 0.1,
          .attention_dropout = 0.1};
}

model::ModelConfig llama() {
  return {.layers = 4,
          .hidden = 32,
          .ffn = 48,
          .heads = 4,
          .kv_heads = 2,
          .head_dim = 8,
          .vocabulary = 50,
          .padded_vocabulary = 56,
          .max_positions = 32,
          .learned_positions = false,
          .norm = ops::NormKind::rms_norm,
          .swiglu = true,
          .bias = false,
          .tied_embeddings = false,
          .init_std = 0.05};
}

double difference(const std::vector<float>& a, const std::vector<float>& b) {
  double distance = 0.0;
  double norm = 0.0;
  for (size_t i = 0; i < b.size(); ++i) {
    distance += std::pow(static_cast<double>(a[i]) - b[i], 2);
    norm += std::pow(static_cast<double>(b[i]), 2);
  }
  return std::sqrt(distance / std::max(norm, 1e-30));
}

void expect_near(double value, double expected, const std::string& what) {
  constexpr double kAcrossLayouts = 1e-4;
  EXPECT_NEAR(value / expected, 1.0, kAcrossLayouts) << what << ": " << value << ", alone " << expected;
}

void expect_same_training(const LayoutCase& test) {
  SCOPED_TRACE(to_string(test.layout));
  LayoutCase alone = test;
  alone.layout = {};
  alone.reduces_in_bf16 = false;
  const LayoutOutcome expected = train_on(alone);
  const LayoutOutcome outcome = train_on(test);
  for (size_t step = 0; step < expected.losses.size(); ++step) {
    expect_near(outcome.losses[step], expected.losses[step], fmt::format("loss of step {}", step));
    expect_near(outcome.norms[step], expected.norms[step], fmt::format("norm of step {}", step));
  }
  expect_near(outcome.validation, expected.validation, "validation");
  ASSERT_EQ(outcome.weights.size(), expected.weights.size());
  for (size_t i = 0; i < expected.weights.size(); ++i) {
    // The true gradient of the K bias is zero: what Adam makes of rounding is not compared.
    if (expected.weights[i].first.ends_with("qkv.bias")) continue;
    EXPECT_LE(difference(outcome.weights[i].second, expected.weights[i].second), 1e-3) << expected.weights[i].first;
  }
}

using parallel::Layout;
using parallel::PipelineSchedule;

class Layouts : public ::testing::TestWithParam<std::tuple<std::string, Layout>> {
 protected:
  static LayoutCase test() {
    const auto& [model, layout] = GetParam();
    return {.config = model == "gpt" ? gpt() : llama(), .layout = layout};
  }
};

TEST_P(Layouts, TrainsAsOneRankDoes) {
  expect_same_training(test());
}

const std::vector<Layout> kLayouts = {
    {.data = 2},
    {.data = 4, .shards_optimizer = true},
    {.tensor = 2},
    {.tensor = 4},
    {.tensor = 4, .sequence_parallel = true},
    {.tensor = 2, .data = 2, .sequence_parallel = true, .shards_optimizer = true},
    {.pipeline = 2},
    {.pipeline = 4},
    {.pipeline = 2, .chunks = 2},
    {.pipeline = 2, .data = 2, .shards_optimizer = true},
    {.pipeline = 2, .schedule = PipelineSchedule::zero_bubble},
    {.context = 2},
    {.context = 4},
    {.context = 2, .data = 2, .shards_optimizer = true},
    {.tensor = 2, .context = 2, .sequence_parallel = true},
    {.tensor = 2, .pipeline = 2, .data = 2, .sequence_parallel = true, .shards_optimizer = true},
    {.tensor = 2, .pipeline = 2, .chunks = 2, .context = 2},
    {.chunks = 4, .data = 2, .shards_optimizer = true, .shards_weights = true},
    {.pipeline = 3, .split = {.counts_embedding = true, .counts_loss = true}},
    {.pipeline = 2, .split = {.first_stage = 1}},
};

std::string name_of_case(const ::testing::TestParamInfo<Layouts::ParamType>& info) {
  const auto& [model, l] = info.param;
  std::string name = fmt::format("{}_{}_TP{}_PP{}_VP{}_CP{}_DP{}", info.index, model, l.tensor, l.pipeline, l.chunks,
                                 l.context, l.data);
  if (l.sequence_parallel) name += "_SP";
  if (l.shards_weights) name += "_sharded_weights";
  if (l.schedule == PipelineSchedule::zero_bubble) name += "_zero_bubble";
  return name;
}

INSTANTIATE_TEST_SUITE_P(Gpt, Layouts, ::testing::Combine(::testing::Values("gpt"), ::testing::ValuesIn(kLayouts)),
                         name_of_case);
INSTANTIATE_TEST_SUITE_P(Llama, Layouts, ::testing::Combine(::testing::Values("llama"), ::testing::ValuesIn(kLayouts)),
                         name_of_case);

}  // namespace
}  // namespace megalith::train::testing
