#include <gtest/gtest.h>

#include <cmath>

#include "config/load.h"
#include "config/validate.h"
#include "core/thread_pool.h"
#include "model/layers/attention.h"

namespace megalith::model {
namespace {

// What transformers makes of `rope_scaling` {rope_type: llama3, factor: 8, low_freq_factor: 1, high_freq_factor: 4,
// original_max_position_embeddings: 8192} with heads of 128 and base 10000: the pair and its inverse frequency.
constexpr std::pair<int64_t, double> kLlama3[] = {
    {0, 1.0},                     // short waves are kept
    {20, 0.056234132519034905},   //
    {40, 0.003162277660168379},   //
    {41, 0.002395251013203379},   // blended
    {44, 0.00090615273954339},    //
    {49, 0.0001408380413313997},  //
    {50, 9.373677616655697e-05},  // long ones are an eighth
    {63, 1.4434774808618228e-05},
};

TEST(RopeTable, NemosScaledPositionalEmbeddingIsLlama3Scaling) {
  const std::vector<std::string> overrides{"model.position_embedding_type=rope",
                                           "model.scale_positional_embedding=true", "model.hidden_size=256",
                                           "model.num_attention_heads=2", "model.encoder_seq_length=512"};
  config::Run run = config::load(std::vector<config::Source>{}, overrides);
  config::validate(run);
  const ModelConfig model = make_model_config(run, 256);
  ThreadPool pool(1);
  Stream stream(pool);
  Arena arena("rope", Device::cpu, 1 << 20);
  const RopeTable table = make_rope_table(model, stream, arena);
  constexpr int64_t kPairs = 64;
  ASSERT_EQ(table.cos.shape, (Shape{512, kPairs}));
  for (const auto& [pair, frequency] : kLlama3) {
    for (const int64_t position : {1, 300, 511}) {
      const double angle = static_cast<double>(position) * frequency;
      EXPECT_NEAR(table.cos.as<float>()[position * kPairs + pair], std::cos(angle), 1e-6) << pair << " " << position;
      EXPECT_NEAR(table.sin.as<float>()[position * kPairs + pair], std::sin(angle), 1e-6) << pair << " " << position;
    }
  }
}

}  // namespace
}  // namespace megalith::model
