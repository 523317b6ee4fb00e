#include "ops/cuda/attention/attention_path.h"

#include <gtest/gtest.h>

#include <functional>

namespace megalith::ops::cuda {
namespace {

TEST(CudaAttentionPath, IsTheFastestThatTakesTheProblem) {
  const AttentionTraits plain{.dtype = DType::bf16, .head_dim = 128, .is_aligned = true, .is_square = true};
  const auto with = [&](const std::function<void(AttentionTraits&)>& change) {
    AttentionTraits traits = plain;
    change(traits);
    return attention_path(traits);
  };
  EXPECT_EQ(attention_path(plain), AttentionPath::cudnn);
  EXPECT_EQ(with([](auto& traits) { traits.has_dropout = true; }), AttentionPath::tensor_cores);
  EXPECT_EQ(with([](auto& traits) { traits.has_documents = true; }), AttentionPath::tensor_cores);
  EXPECT_EQ(with([](auto& traits) { traits.has_documents = traits.has_bounds = true; }), AttentionPath::cudnn);
  EXPECT_EQ(with([](auto& traits) {
              traits.has_documents = traits.has_bounds = true;
              traits.head_dim = 192;
            }),
            AttentionPath::generic);
  EXPECT_EQ(with([](auto& traits) { traits.is_square = false; }), AttentionPath::tensor_cores);
  const auto tail = [](int64_t queries) {
    return [queries](AttentionTraits& traits) {
      traits.is_square = false;
      traits.ends_together = true;
      traits.queries = queries;
    };
  };
  EXPECT_EQ(with(tail(128)), AttentionPath::cudnn);
  EXPECT_EQ(with(tail(1)), AttentionPath::tensor_cores);  // a token of a generation
  EXPECT_EQ(with([](auto& traits) { traits.is_aligned = false; }), AttentionPath::generic);
  EXPECT_EQ(with([](auto& traits) { traits.head_dim = 20; }), AttentionPath::generic);
  EXPECT_EQ(with([](auto& traits) { traits.dtype = DType::f32; }), AttentionPath::generic);
  EXPECT_EQ(with([](auto& traits) { traits.head_dim = 256; }), AttentionPath::cudnn);
  EXPECT_EQ(own_attention_path(plain), AttentionPath::tensor_cores);
}

}  // namespace
}  // namespace megalith::ops::cuda
