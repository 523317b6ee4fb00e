#include "cost/flops.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "config/derived.h"
#include "config/load.h"
#include "config/validate.h"
#include "repository.h"

namespace megalith::cost {
namespace {

config::Model recipe(const std::string& name) {
  const auto path = in_repository("recipes/" + name + ".yaml");
  config::Run run = config::load(std::vector{path}, {});
  config::validate(run);
  return run.model;
}

int64_t vocab_of(const config::Model& model) {
  return config::padded_vocab(model.tokenizer.vocab_size, model.make_vocab_size_divisible_by);
}

TEST(Flops, PublishedLlamaCounts) {
  EXPECT_EQ(parameter_count(recipe("llama3.2-1b"), 128256), 1'235'814'400);
  EXPECT_EQ(parameter_count(recipe("llama3.1-8b"), 128256), 8'030'261'248);
  EXPECT_EQ(parameter_count(recipe("llama3.1-70b"), 128256), 70'553'706'496);
  EXPECT_EQ(parameter_count(recipe("llama3.1-405b"), 128256), 405'853'388'800);
}

// 12 L h^2 + 13 L h for the layers, V h and T h for the embeddings, 2 h for the last norm.
TEST(Flops, GptCountsFollowTheClosedForm) {
  for (const std::string name :
       {"125m", "350m", "760m", "1.3b", "2.7b", "6.7b", "13b", "23b", "46b", "175b", "375m", "857m"}) {
    const config::Model model = recipe("gpt3-" + name);
    const int64_t layers = model.num_layers;
    const int64_t h = model.hidden_size;
    const int64_t vocab = vocab_of(model);
    EXPECT_EQ(parameter_count(model, vocab),
              layers * (12 * h * h + 13 * h) + (vocab + model.max_position_embeddings) * h + 2 * h)
        << name;
  }
}

TEST(Flops, GptCountsMatchTheirNames) {
  const std::vector<std::pair<std::string, double>> published = {
      {"125m", 125e6}, {"350m", 350e6}, {"760m", 760e6}, {"1.3b", 1.3e9}, {"2.7b", 2.7e9}, {"6.7b", 6.7e9},
      {"13b", 13e9},   {"23b", 23e9},   {"30b", 30e9},   {"46b", 46e9},   {"175b", 175e9}};
  for (const auto& [name, count] : published) {
    const config::Model model = recipe("gpt3-" + name);
    EXPECT_NEAR(static_cast<double>(parameter_count(model, vocab_of(model))) / count, 1.0, 0.03) << name;
  }
  // Azure's names are not counts.
  EXPECT_EQ(parameter_count(recipe("gpt3-375m"), 50304), 64'109'568);
  EXPECT_EQ(parameter_count(recipe("gpt3-857m"), 50304), 355'919'872);
}

TEST(Flops, Gpt3PerSampleIsTheSeedsNumber) {
  for (const std::string name : {"gpt3-175b", "gpt3-175b-dgxc", "gpt3-175b-azure"}) {
    const config::Model model = recipe(name);
    EXPECT_EQ(vocab_of(model), 51200);
    const int64_t attention = 376'883'380'224, mlp = 695'784'701'952, embedding = 3'774'873'600;
    EXPECT_EQ(model_flops_per_sample(model, 51200), static_cast<double>(2048 * (attention + mlp + embedding)));
    EXPECT_EQ(model_flops_per_sample(model, 51200), 2204555173429248.0);
  }
}

// Google's table, rounded there: llama3.1-8b 4.74e14, 70b 3.9129e15, 405b 2.16533e16; it counts attention in its own
// ways.
TEST(Flops, LlamaPerSampleIsNearGooglesTable) {
  EXPECT_NEAR(model_flops_per_sample(recipe("llama3.1-8b"), 128256) / 4.74e14, 1.0, 0.1);
  EXPECT_NEAR(model_flops_per_sample(recipe("llama3.1-70b"), 128256) / 3.9129e15, 1.0, 0.1);
  EXPECT_NEAR(model_flops_per_sample(recipe("llama3.1-405b"), 128256) / 2.16533e16, 1.0, 0.05);
}

TEST(Flops, CausalCountLeavesHalfOfAttention) {
  config::Model model;
  model.num_layers = 3;
  model.hidden_size = 64;
  model.num_attention_heads = 4;
  model.kv_channels = 8;  // heads narrower than the model: attention is 32 wide
  model.encoder_seq_length = 10;
  const double matmul = 6.0 * static_cast<double>(matmul_weights(model, 100)) * 10;
  EXPECT_EQ(matmul_weights(model, 100), 3 * (64 * 96 + 32 * 64 + 2 * 64 * 256) + 100 * 64);
  EXPECT_EQ(model_flops_per_sample(model, 100), matmul + 12.0 * 3 * 32 * 100);
  EXPECT_EQ(causal_flops_per_sample(model, 100), matmul + 12.0 * 3 * 32 * 55);
}

TEST(Flops, EverySwitchOfTheShapeCounts) {
  config::Model model;
  model.num_layers = 2;
  model.hidden_size = 8;
  model.num_attention_heads = 2;
  model.ffn_hidden_size = 16;
  model.encoder_seq_length = 4;
  const int64_t base = parameter_count(model, 10);
  EXPECT_EQ(base, 2 * (4 * 64 + 2 * 8 * 16 + (24 + 8 + 16 + 8) + 4 * 8) + (10 + 4) * 8 + 2 * 8);

  config::Model other = model;
  other.bias = false;
  EXPECT_EQ(base - parameter_count(other, 10), 2 * (24 + 8 + 16 + 8));
  other = model;
  other.normalization = config::Normalization::rmsnorm;
  EXPECT_EQ(base - parameter_count(other, 10), 5 * 8);
  other = model;
  other.activation = config::Activation::swiglu;
  EXPECT_EQ(parameter_count(other, 10) - base, 2 * (8 * 16 + 16));
  other = model;
  other.share_embeddings_and_output_weights = false;
  EXPECT_EQ(parameter_count(other, 10) - base, 10 * 8);
  EXPECT_EQ(matmul_weights(other, 10), matmul_weights(model, 10));
  other = model;
  other.position_embedding_type = config::Positions::rope;
  EXPECT_EQ(base - parameter_count(other, 10), 4 * 8);
  other = model;
  other.num_query_groups = 1;
  EXPECT_EQ(base - parameter_count(other, 10), 2 * (8 * 8 + 8));
}

}  // namespace
}  // namespace megalith::cost
