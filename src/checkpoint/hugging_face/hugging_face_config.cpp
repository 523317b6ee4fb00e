#include "checkpoint/hugging_face/hugging_face_config.h"

#include <algorithm>
#include <variant>

#include "checkpoint/hugging_face/hugging_face_keys.h"
#include "config/derived.h"
#include "core/error.h"

namespace megalith::checkpoint {

using nlohmann::json;

namespace {

constexpr JsonLimits kLimits{.max_bytes = int64_t{4} << 20, .max_values = 100'000, .max_depth = 16};

// Llama 3.1 reads 131072 tokens at once, few machines do: a sample is no longer than this unless somebody asks.
constexpr int64_t kLongestSample = 8192;

// Padding is made here, so that a file must not ask for any amount of it.
constexpr int64_t kMostPadding = int64_t{1} << 14;

json rope_of(const config::Model& model) {
  const config::RopeScaling& scaling = model.rope_scaling;
  if (scaling.factor == 1.0) return nullptr;
  return {{"rope_type", "llama3"},
          {"factor", scaling.factor},
          {"low_freq_factor", scaling.low_freq_factor},
          {"high_freq_factor", scaling.high_freq_factor},
          {"original_max_position_embeddings", scaling.old_context_len}};
}

// Transformers 5 keeps all of this in `rope_parameters`; before, the base stood beside `rope_scaling`.
void read_rope(KeyReader& keys, config::Model& model) {
  model.rotary_base = keys.number("rope_theta", model.rotary_base);
  const json* scaling = keys.find("rope_scaling");
  const json* parameters = keys.find("rope_parameters");
  if (scaling != nullptr && parameters != nullptr && *scaling != *parameters) {
    keys.refuse("'rope_scaling' and 'rope_parameters' say different things");
  }
  const json* found = parameters != nullptr ? parameters : scaling;
  if (found == nullptr) return;
  KeyReader rope(*found, keys.where() + (parameters != nullptr ? ": rope_parameters" : ": rope_scaling"));
  model.rotary_base = rope.number("rope_theta", model.rotary_base);
  rope.must_be("partial_rotary_factor", {1.0});
  const std::string type = rope.text(rope.find("rope_type") != nullptr ? "rope_type" : "type", "default");
  if (type == "llama3") {
    model.rope_scaling = {.factor = rope.number("factor"),
                          .low_freq_factor = rope.number("low_freq_factor"),
                          .high_freq_factor = rope.number("high_freq_factor"),
                          .old_context_len = rope.integer("original_max_position_embeddings")};
  } else if (type != "default") {
    rope.refuse(fmt::format("the rope type '{}' is not supported; default and llama3 are", type));
  }
  if (const auto unused = rope.unused(); !unused.empty()) rope.refuse(fmt::format("unknown key '{}'", unused.front()));
}

void check_vocabulary(const ImportedConfig& config, const KeyReader& keys) {
  if (config.vocabulary < 1) keys.refuse(fmt::format("'vocab_size' is {}", config.vocabulary));
  const int64_t multiple = config.model.make_vocab_size_divisible_by;
  if (multiple < 1 || multiple > kMostPadding) {
    keys.refuse(fmt::format("'make_vocab_size_divisible_by' is {}, outside [1, {}]", multiple, kMostPadding));
  }
}

HuggingFaceFamily read_family(KeyReader& keys) {
  const std::string type = keys.text("model_type", "");
  for (const HuggingFaceFamily family : {HuggingFaceFamily::gpt2, HuggingFaceFamily::llama}) {
    if (names_of(family).model_type == type) return family;
  }
  keys.refuse(fmt::format("model_type '{}' is not supported; gpt2 and llama are", type));
}

}  // namespace

HuggingFaceFamily family_of(const config::Model& model) {
  const bool rope = model.position_embedding_type == config::Positions::rope;
  const bool rms_norm = model.normalization == config::Normalization::rmsnorm;
  const bool swiglu = model.activation == config::Activation::swiglu;
  if (rope && rms_norm && swiglu) return HuggingFaceFamily::llama;
  const bool plain_heads = config::num_query_groups(model) == model.num_attention_heads &&
                           config::kv_channels(model) * model.num_attention_heads == model.hidden_size;
  if (!rope && !rms_norm && !swiglu && model.bias && plain_heads) return HuggingFaceFamily::gpt2;
  user_error(
      "a model with {} positions, {}, {}, {} biases, {} query groups for {} heads of {} channels is neither a GPT-2 "
      "(learned_absolute, layernorm, gelu, biases, a query group for each head, heads as wide as the model together) "
      "nor a Llama (rope, rmsnorm, swiglu)",
      word_of(model.position_embedding_type), word_of(model.normalization), word_of(model.activation),
      model.bias ? "with" : "no", config::num_query_groups(model), model.num_attention_heads,
      config::kv_channels(model));
}

std::string write_hugging_face_config(const ExportedConfig& config) {
  const HuggingFaceFamily family = family_of(config.model);
  const FamilyNames& names = names_of(family);
  nlohmann::ordered_json root;
  root["architectures"] = nlohmann::ordered_json::array({names.architecture});
  root["model_type"] = names.model_type;
  for (const FixedKey& key : keys_of(family).fixed) {
    if (!key.accepted.front().is_null()) root[key.theirs] = key.accepted.front();
  }
  for (const KeyRule& key : keys_of(family).rules) {
    std::visit([&](auto field) { root[key.theirs] = config.model.*field; }, key.ours);
  }
  root["vocab_size"] = config.vocabulary;
  if (family == HuggingFaceFamily::llama) {
    root["rope_theta"] = config.model.rotary_base;
    root["rope_scaling"] = rope_of(config.model);
  }
  const json no_token;
  root["bos_token_id"] = no_token;
  root["eos_token_id"] = config.end_of_text >= 0 ? json(config.end_of_text) : no_token;
  root["pad_token_id"] = no_token;
  root["torch_dtype"] = config.dtype == DType::bf16 ? "bfloat16" : "float32";
  return root.dump(2) + "\n";
}

ImportedConfig read_hugging_face_config(std::string_view text, const std::string& where) {
  const json root = parse_strict_json(text, kLimits, where);
  KeyReader keys(root, where);
  ImportedConfig config{.family = read_family(keys)};
  const FamilyKeys& table = keys_of(config.family);
  for (const FixedKey& key : table.fixed) keys.must_be(key.theirs, key.accepted);
  table.set_choices(config.model);
  for (size_t i = 0; i < table.rules.size(); ++i) {
    keys.read(table.rules[i], config.model);
    // Two keys of theirs may be one of ours.
    for (size_t j = 0; j < i; ++j) {
      if (table.rules[j].ours == table.rules[i].ours) keys.must_agree(table.rules[j], table.rules[i]);
    }
  }
  config.vocabulary = keys.integer("vocab_size");
  check_vocabulary(config, keys);
  if (config.family == HuggingFaceFamily::llama) read_rope(keys, config.model);
  config.model.encoder_seq_length = std::min(config.model.max_position_embeddings, kLongestSample);
  config.unused = keys.unused();
  return config;
}

}  // namespace megalith::checkpoint
