#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "checkpoint/hugging_face_exported.h"
#include "expect_error.h"

namespace megalith::checkpoint {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using test::Exported;
using test::find;

struct BadKey {
  const char* key;
  json value;
  const char* words = "";
};

void expect_each_refused(const char* yaml, const std::vector<BadKey>& cases) {
  const Exported model(yaml);
  const std::string good = test::bytes_of(model / kHuggingFaceConfig);
  for (const BadKey& bad : cases) {
    model.change_json(kHuggingFaceConfig, [&](json& root) { root[bad.key] = bad.value; });
    SCOPED_TRACE(bad.key);
    model.expect_refused({bad.words[0] != '\0' ? bad.words : bad.key, kHuggingFaceConfig});
    test::overwrite(model / kHuggingFaceConfig, good);
  }
  model.import_it();
}

TEST(HuggingFaceRefusals, WhatGpt2ConfigsSay) {
  expect_each_refused(test::kGpt, {{"model_type", "gpt_neox"},
                                   {"model_type", nullptr},
                                   {"activation_function", "gelu"},
                                   {"activation_function", "relu"},
                                   {"scale_attn_weights", false},
                                   {"scale_attn_by_inverse_layer_idx", true},
                                   {"add_cross_attention", true},
                                   {"quantization_config", {{"bits", 4}}},
                                   {"n_embd", nullptr},
                                   {"n_embd", "16"},
                                   {"n_layer", -1},
                                   {"n_layer", 2.5},
                                   {"n_positions", 1e30},
                                   {"layer_norm_epsilon", "small"},
                                   {"embd_pdrop", 0.5},
                                   {"vocab_size", 0},
                                   {"vocab_size", (uint64_t{1} << 63) + 257},
                                   {"make_vocab_size_divisible_by", 1 << 20}});
}

TEST(HuggingFaceRefusals, WhatLlamaConfigsSay) {
  expect_each_refused(test::kLlama, {{"hidden_act", "gelu"},
                                     {"attention_bias", true},
                                     {"mlp_bias", true},
                                     {"sliding_window", 4096},
                                     {"partial_rotary_factor", 0.5},
                                     {"rope_scaling", {{"type", "linear"}, {"factor", 2.0}}, "linear"},
                                     {"rope_scaling", {{"rope_type", "yarn"}}, "yarn"},
                                     {"rope_scaling", {{"rope_type", "llama3"}, {"factor", 8.0}}, "low_freq_factor"},
                                     {"rope_scaling", "none"},
                                     {"rope_parameters", {{"rope_type", "default"}, {"surprise", 1}}, "surprise"},
                                     {"intermediate_size", nullptr},
                                     {"tie_word_embeddings", 1}});
}

TEST(HuggingFaceRefusals, SizesThatNoModelHas) {
  const Exported model(test::kGpt);
  model.change_json(kHuggingFaceConfig, [](json& root) { root["n_layer"] = int64_t{1} << 40; });
  model.expect_refused({"model.num_layers"}, ErrorKind::user);
  model.change_json(kHuggingFaceConfig, [](json& root) { root["n_layer"] = 3; });
  model.expect_refused({"transformer.h.2."});
  model.change_json(kHuggingFaceConfig, [](json& root) { root["n_layer"] = 1; });
  model.expect_refused({"transformer.h.1.", "no part"});
  test::overwrite(model / kHuggingFaceConfig, R"({"model_type":"gpt2","model_type":"gpt2"})");
  model.expect_refused({"twice"});
  test::overwrite(model / kHuggingFaceConfig, std::string(1000, '['));
  model.expect_refused({kHuggingFaceConfig});
}

TEST(HuggingFaceRefusals, TensorsThatAreNotTheModels) {
  const Exported missing(test::kGpt);
  missing.change_tensors([](auto& tensors) { tensors.erase(tensors.begin() + 3); });
  missing.expect_refused({"there is no tensor"});

  const Exported extra(test::kLlama);
  std::vector<float> values(64);
  extra.change_tensors([&](auto& tensors) {
    tensors.push_back({"model.layers.0.extra", Tensor(values.data(), DType::f32, {8})});
  });
  extra.expect_refused({"model.layers.0.extra", kSingleFile});

  const Exported reshaped(test::kGpt);
  reshaped.change_tensors([](auto& tensors) {
    Tensor& tensor = find(tensors, "transformer.h.0.attn.c_attn.weight");
    tensor = tensor.view({48, 16});
  });
  reshaped.expect_refused({"transformer.h.0.attn.c_attn.weight", "[48, 16]", kSingleFile});

  const Exported retyped(test::kGpt);
  retyped.change_tensors([](auto& tensors) { find(tensors, "transformer.ln_f.bias").dtype = DType::i32; });
  retyped.expect_refused({"transformer.ln_f.bias", "I32"});

  const Exported cut(test::kGpt);
  fs::resize_file(cut / kSingleFile, fs::file_size(cut / kSingleFile) - 1);
  cut.expect_refused({kSingleFile});
}

TEST(HuggingFaceRefusals, AHeadThatIsNotTheEmbedding) {
  const Exported model(test::kGpt);
  std::vector<float> head(257 * 16);
  model.change_tensors([&](auto& tensors) {
    const float* tokens = find(tensors, "transformer.wte.weight").template as<float>();
    head.assign(tokens, tokens + head.size());
    tensors.push_back({"lm_head.weight", Tensor(head.data(), DType::f32, {257, 16})});
  });
  model.import_it();
  model.change_tensors([](auto& tensors) { find(tensors, "lm_head.weight").template as<float>()[5] += 1.0F; });
  model.expect_refused({"lm_head.weight", "tie_word_embeddings"});
}

TEST(HuggingFaceRefusals, IndexesThatLie) {
  const Exported model(test::kLlama, {.max_shard_bytes = 4000});
  const std::string good = test::bytes_of(model / kIndexFile);
  const auto expect = [&](auto&& change, const std::vector<std::string>& words) {
    model.change_json(kIndexFile, change);
    model.expect_refused(words);
    test::overwrite(model / kIndexFile, good);
  };
  for (const char* name : {"../model-00001-of-00002.safetensors", "/etc/passwd", "config.json", ".safetensors", ""}) {
    expect([&](json& root) { root["weight_map"]["lm_head.weight"] = name; }, {"lm_head.weight", kIndexFile});
  }
  expect([](json& root) { root["weight_map"]["ghost"] = root["weight_map"]["lm_head.weight"]; }, {"ghost"});
  expect([](json& root) { root["weight_map"].erase("lm_head.weight"); }, {"lm_head.weight"});
  expect([](json& root) { root["weight_map"]["lm_head.weight"] = root["weight_map"]["model.embed_tokens.weight"]; },
         {"lm_head.weight"});
  expect([](json& root) { root = json::array(); }, {"weight_map"});
}

TEST(HuggingFaceRefusals, FilesThatAreNotThere) {
  const Exported model(test::kGpt);
  fs::rename(model / kSingleFile, model / "elsewhere");
  model.expect_refused({"neither", "pytorch_model.bin"});
  fs::create_symlink(model / "elsewhere", model / kSingleFile);
  model.expect_refused({kSingleFile, "is a link"});
  fs::remove(model / kSingleFile);
  fs::rename(model / "elsewhere", model / kSingleFile);
  fs::copy_file(model / kHuggingFaceConfig, model / kIndexFile);
  model.expect_refused({"both"});
  fs::remove(model / kIndexFile);
  fs::remove(model / kHuggingFaceConfig);
  model.expect_refused({"is no Hugging Face directory", kHuggingFaceConfig}, ErrorKind::user);
}

TEST(HuggingFaceRefusals, PaddingThatDoesNotFit) {
  const Exported model(test::kGpt);
  ImportOptions options = test::kBytes;
  options.overrides.emplace_back("model.make_vocab_size_divisible_by=128");
  EXPECT_NE(error_of(ErrorKind::data, [&] { model.import_it(options); }).find(kPaddingFile), std::string::npos);
  fs::remove(model / kPaddingFile);
  model.import_it(options);
}

TEST(HuggingFaceRefusals, OverridesThatMakeItAnotherModel) {
  const Exported model(test::kGpt);
  for (const char* change : {"model.normalization=rmsnorm", "model.bias=false", "model.tokenizer.vocab_size=300"}) {
    ImportOptions options = test::kBytes;
    options.overrides.emplace_back(change);
    error_of(ErrorKind::user, [&] { model.import_it(options); });
  }
}

TEST(HuggingFaceRefusals, ATokenizerThatCannotBeReadIsNotLeftOutSilently) {
  const Exported model(test::kGpt);
  test::overwrite(model / "tokenizer.json", R"({"model": {"type": "Unigram"}})");
  const std::string message = error_of(ErrorKind::user, [&] { model.import_it({}); });
  EXPECT_NE(message.find("model.tokenizer.type=NullTokenizer"), std::string::npos) << message;
  const Converted converted = model.import_it({.dtype = {}, .overrides = {"model.tokenizer.type=NullTokenizer"}});
  ASSERT_EQ(converted.notes.size(), 2u);
  EXPECT_NE(converted.notes[0].find("torch_dtype"), std::string::npos);
  EXPECT_NE(converted.notes[1].find("no tokenizer"), std::string::npos);
}

}  // namespace
}  // namespace megalith::checkpoint
