#include "checkpoint/hugging_face/hugging_face_keys.h"

#include <algorithm>
#include <cmath>

#include "core/error.h"

namespace megalith::checkpoint {

using config::Model;
using nlohmann::json;

namespace {

FamilyKeys gpt2_keys() {
  return {.rules = {{"n_layer", &Model::num_layers},
                    {"n_embd", &Model::hidden_size},
                    {"n_inner", &Model::ffn_hidden_size, 0},
                    {"n_head", &Model::num_attention_heads},
                    {"n_positions", &Model::max_position_embeddings},
                    {"layer_norm_epsilon", &Model::layernorm_epsilon, 1e-5},
                    {"initializer_range", &Model::init_method_std, 0.02},
                    {"embd_pdrop", &Model::hidden_dropout, 0.1},
                    {"resid_pdrop", &Model::hidden_dropout, 0.1},
                    {"attn_pdrop", &Model::attention_dropout, 0.1},
                    {"tie_word_embeddings", &Model::share_embeddings_and_output_weights, true},
                    {"make_vocab_size_divisible_by", &Model::make_vocab_size_divisible_by, 128}},
          // Both names are of the tanh form; `gelu` is the one with erf.
          .fixed = {{"activation_function", {"gelu_new", "gelu_pytorch_tanh"}},
                    {"scale_attn_weights", {true}},
                    {"scale_attn_by_inverse_layer_idx", {false}},
                    {"add_cross_attention", {false}},
                    {"quantization_config", {nullptr}}},
          .set_choices = [](Model& model) { model.bias = true; }};
}

FamilyKeys llama_keys() {
  return {.rules = {{"num_hidden_layers", &Model::num_layers},
                    {"hidden_size", &Model::hidden_size},
                    {"intermediate_size", &Model::ffn_hidden_size},
                    {"num_attention_heads", &Model::num_attention_heads},
                    {"num_key_value_heads", &Model::num_query_groups, 0},
                    {"head_dim", &Model::kv_channels, 0},
                    {"max_position_embeddings", &Model::max_position_embeddings},
                    {"rms_norm_eps", &Model::layernorm_epsilon, 1e-6},
                    {"initializer_range", &Model::init_method_std, 0.02},
                    {"attention_dropout", &Model::attention_dropout, 0.0},
                    {"attention_bias", &Model::bias, false},
                    {"mlp_bias", &Model::bias, false},
                    {"tie_word_embeddings", &Model::share_embeddings_and_output_weights, false},
                    {"make_vocab_size_divisible_by", &Model::make_vocab_size_divisible_by, 128}},
          .fixed = {{"hidden_act", {"silu", "swish"}},
                    {"partial_rotary_factor", {nullptr, 1.0}},
                    {"sliding_window", {nullptr}},
                    {"quantization_config", {nullptr}}},
          .set_choices = [](Model& model) {
            model.position_embedding_type = config::Positions::rope;
            model.normalization = config::Normalization::rmsnorm;
            model.activation = config::Activation::swiglu;
          }};
}

// A value as a message may quote it.
std::string shown(const json& value) {
  constexpr size_t kLongest = 60;
  const std::string text = value.dump(-1, ' ', true);
  return text.size() <= kLongest ? text : text.substr(0, kLongest) + "...";
}

template <class T>
bool holds(const json& value) {
  if constexpr (std::is_same_v<T, bool>) return value.is_boolean();
  if constexpr (std::is_same_v<T, double>) return value.is_number() && std::isfinite(value.get<double>());
  constexpr auto kMax = static_cast<uint64_t>(std::numeric_limits<int64_t>::max());
  if (value.is_number_unsigned()) return value.get<uint64_t>() <= kMax;
  return value.is_number_integer() && value.get<int64_t>() >= 0;
}

template <class T>
const char* const kWanted = std::is_same_v<T, bool>     ? "true or false"
                            : std::is_same_v<T, double> ? "a number"
                                                        : "a whole number that is not negative";

template <class T>
T as(const json& value, const char* key, const KeyReader& reader) {
  if (!holds<T>(value)) reader.refuse(fmt::format("'{}' is {}, not {}", key, shown(value), kWanted<T>));
  return value.get<T>();
}

}  // namespace

const FamilyKeys& keys_of(HuggingFaceFamily family) {
  static const FamilyKeys gpt2 = gpt2_keys();
  static const FamilyKeys llama = llama_keys();
  return family == HuggingFaceFamily::gpt2 ? gpt2 : llama;
}

KeyReader::KeyReader(const json& object, std::string where) : object_(object), where_(std::move(where)) {
  if (!object_.is_object()) refuse("not a JSON object");
}

void KeyReader::refuse(const std::string& reason) const {
  data_error("{}: {}", where_, reason);
}

const json* KeyReader::find(const char* key) {
  const auto found = object_.find(key);
  if (found == object_.end()) return nullptr;
  used_.insert(key);
  return found->is_null() ? nullptr : &*found;
}

const json& KeyReader::value_of(const char* key, const json& absent) {
  const json* found = find(key);
  if (found == nullptr && absent.is_null()) refuse(fmt::format("the key '{}' is missing", key));
  return found != nullptr ? *found : absent;
}

int64_t KeyReader::integer(const char* key) {
  return as<int64_t>(value_of(key, {}), key, *this);
}

double KeyReader::number(const char* key, std::optional<double> absent) {
  const json* found = find(key);
  if (found == nullptr && absent) return *absent;
  return as<double>(value_of(key, {}), key, *this);
}

std::string KeyReader::text(const char* key, const std::string& absent) {
  const json* found = find(key);
  if (found == nullptr) return absent;
  if (!found->is_string()) refuse(fmt::format("'{}' is {}, not a text", key, shown(*found)));
  return found->get<std::string>();
}

void KeyReader::must_be(const char* key, const std::vector<json>& accepted) {
  const json* found = find(key);
  if (found == nullptr || std::find(accepted.begin(), accepted.end(), *found) != accepted.end()) return;
  refuse(fmt::format("'{}' is {}, and Megalith's model can only be one with {}", key, shown(*found),
                     accepted.front().is_null() ? "none" : shown(accepted.front())));
}

void KeyReader::read(const KeyRule& rule, Model& model) {
  const json& value = value_of(rule.theirs, rule.absent);
  std::visit([&]<class T>(T Model::*field) { model.*field = as<T>(value, rule.theirs, *this); }, rule.ours);
}

void KeyReader::must_agree(const KeyRule& one, const KeyRule& other) {
  const json& first = value_of(one.theirs, one.absent);
  const json& second = value_of(other.theirs, other.absent);
  if (first == second) return;
  refuse(fmt::format("'{}' is {} and '{}' is {}, but Megalith has one setting for both", one.theirs, shown(first),
                     other.theirs, shown(second)));
}

std::vector<std::string> KeyReader::unused() const {
  std::vector<std::string> keys;
  for (const auto& [key, value] : object_.items()) {
    if (!used_.contains(key)) keys.push_back(key);
  }
  return keys;
}

}  // namespace megalith::checkpoint
