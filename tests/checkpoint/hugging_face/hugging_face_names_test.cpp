#include "checkpoint/hugging_face/hugging_face_names.h"

#include <gtest/gtest.h>

#include <map>
#include <set>

#include "model/parameters.h"

namespace megalith::checkpoint {
namespace {

model::ModelConfig gpt2(bool tied) {
  return {.layers = 12,
          .hidden = 16,
          .ffn = 64,
          .heads = 4,
          .kv_heads = 4,
          .head_dim = 4,
          .vocabulary = 61,
          .padded_vocabulary = 64,
          .max_positions = 8,
          .tied_embeddings = tied};
}

model::ModelConfig llama(bool tied, bool bias, int64_t kv_heads) {
  model::ModelConfig config = gpt2(tied);
  config.kv_heads = kv_heads;
  config.learned_positions = false;
  config.norm = ops::NormKind::rms_norm;
  config.swiglu = true;
  config.bias = bias;
  return config;
}

struct Case {
  HuggingFaceFamily family;
  model::ModelConfig config;
};

std::vector<Case> all_cases() {
  std::vector<Case> cases;
  for (const bool tied : {true, false}) {
    cases.push_back({HuggingFaceFamily::gpt2, gpt2(tied)});
    for (const bool bias : {true, false}) {
      for (const int64_t kv_heads : {1, 2, 4}) {
        cases.push_back({HuggingFaceFamily::llama, llama(tied, bias, kv_heads)});
      }
    }
  }
  return cases;
}

TEST(HuggingFaceNames, EveryRowOfEveryParameterHasOnePlace) {
  for (const Case& c : all_cases()) {
    const parallel::ParameterTable table = model::logical_parameters(c.config);
    const std::vector<ForeignParameter> parameters = foreign_parameters(c.family, table, c.config.vocabulary);
    ASSERT_EQ(parameters.size(), table.size());
    std::set<std::string> names;
    for (size_t i = 0; i < parameters.size(); ++i) {
      const parallel::ParameterSpec& spec = table.specs()[i];
      EXPECT_EQ(parameters[i].spec, &spec);
      int64_t rows = 0;
      int64_t elements = 0;
      for (const ForeignTensor& tensor : parameters[i].tensors) {
        EXPECT_TRUE(names.insert(tensor.name).second) << tensor.name;
        EXPECT_EQ(tensor.name.find('*'), std::string::npos) << tensor.name;
        EXPECT_EQ(tensor.first_row, rows) << tensor.name;
        EXPECT_FALSE(is_ignored(c.family, tensor.name)) << tensor.name;
        rows += tensor.rows;
        elements += tensor.shape.elements();
      }
      EXPECT_EQ(rows + parameters[i].padding_rows, spec.shape[0]) << spec.name;
      EXPECT_EQ(elements, spec.shape.elements() / spec.shape[0] * rows) << spec.name;
      const bool by_token = spec.name == "embedding.tokens.weight" || spec.name == "head.weight";
      EXPECT_EQ(parameters[i].padding_rows, by_token ? 3 : 0) << spec.name;
    }
  }
}

TEST(HuggingFaceNames, NoRuleIsDead) {
  std::map<HuggingFaceFamily, std::set<std::string>> written;
  for (const Case& c : all_cases()) {
    const parallel::ParameterTable table = model::logical_parameters(c.config);
    for (const ForeignParameter& parameter : foreign_parameters(c.family, table, c.config.vocabulary)) {
      for (const ForeignTensor& tensor : parameter.tensors) written[c.family].insert(tensor.name);
    }
  }
  for (const auto& [family, names] : written) {
    for (const NameRule& rule : names_of(family).rules) {
      for (std::string name : std::vector<std::string>(rule.theirs.begin(), rule.theirs.end())) {
        if (const size_t star = name.find('*'); star != std::string::npos) name.replace(star, 1, "11");
        EXPECT_TRUE(names.contains(name)) << name;
      }
    }
  }
}

TEST(HuggingFaceNames, BuffersAreKnownByTheirWholeName) {
  EXPECT_TRUE(is_ignored(HuggingFaceFamily::gpt2, "transformer.h.11.attn.masked_bias"));
  EXPECT_FALSE(is_ignored(HuggingFaceFamily::gpt2, "transformer.h.x.attn.masked_bias"));
  EXPECT_FALSE(is_ignored(HuggingFaceFamily::gpt2, "transformer.h..attn.bias"));
  EXPECT_FALSE(is_ignored(HuggingFaceFamily::gpt2, "transformer.h.1.attn.c_attn.bias"));
  EXPECT_TRUE(is_ignored(HuggingFaceFamily::llama, "model.layers.0.self_attn.rotary_emb.inv_freq"));
}

}  // namespace
}  // namespace megalith::checkpoint
