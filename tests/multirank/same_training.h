#pragma once

#include <gtest/gtest.h>

#include <cmath>

#include "layout_run.h"

namespace megalith::train::testing {

inline model::ModelConfig gpt() {
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

inline model::ModelConfig llama() {
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

// How far a layout may be from one rank.
struct Tolerance {
  double first_loss = 1e-6;  // before any update
  double loss = 1e-4;
  double norm = 1e-4;
  double weights = 1e-4;  // relative L2 of a tensor
};

inline double difference(const std::vector<float>& a, const std::vector<float>& b) {
  double distance = 0.0;
  double norm = 0.0;
  for (size_t i = 0; i < b.size(); ++i) {
    distance += std::pow(static_cast<double>(a[i]) - b[i], 2);
    norm += std::pow(static_cast<double>(b[i]), 2);
  }
  return std::sqrt(distance / std::max(norm, 1e-30));
}

inline void expect_near(double value, double expected, double tolerance, const std::string& what) {
  EXPECT_NEAR(value / expected, 1.0, tolerance) << what << ": " << value << ", alone " << expected;
}

// One rank that keeps all activations and takes one sample at a time.
inline LayoutOutcome train_alone(LayoutCase test) {
  test.layout = {};
  test.micro_batch = 1;
  test.reduces_in_bf16 = false;
  test.config.recompute = model::Recompute::none;
  return train_on(test);
}

inline void expect_same_training(const LayoutCase& test, const Tolerance& tolerance = {}) {
  SCOPED_TRACE(to_string(test.layout));
  const LayoutOutcome expected = train_alone(test);
  const LayoutOutcome outcome = train_on(test);
  expect_near(outcome.losses[0], expected.losses[0], tolerance.first_loss, "loss of the first step");
  for (size_t step = 0; step < expected.losses.size(); ++step) {
    expect_near(outcome.losses[step], expected.losses[step], tolerance.loss, fmt::format("loss of step {}", step));
    expect_near(outcome.norms[step], expected.norms[step], tolerance.norm, fmt::format("norm of step {}", step));
    expect_near(outcome.validations[step], expected.validations[step], tolerance.loss,
                fmt::format("validation after step {}", step));
  }
  ASSERT_EQ(outcome.weights.size(), expected.weights.size());
  for (const auto& [name, values] : expected.weights) {
    // The true gradient of the K bias is zero: what Adam makes of rounding is not compared.
    if (name.ends_with("qkv.bias")) continue;
    ASSERT_TRUE(outcome.weights.contains(name)) << name;
    EXPECT_LE(difference(outcome.weights.at(name), values), tolerance.weights) << name;
  }
  // The plan of memory is exact: the rank that needs most needs all of it.
  for (const auto& [arena, bytes] : outcome.unused) EXPECT_EQ(bytes, 0) << arena;
}

}  // namespace megalith::train::testing
