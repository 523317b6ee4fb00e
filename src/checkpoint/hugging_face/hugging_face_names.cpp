#include "checkpoint/hugging_face/hugging_face_names.h"

#include <algorithm>
#include <optional>

#include "core/error.h"

namespace megalith::checkpoint {

namespace {

// Conv1D of GPT-2 keeps its matrices (in, out); its c_attn has q, k and v side by side, as the rows are stacked here.
FamilyNames gpt2_names() {
  return {
      .model_type = "gpt2",
      .architecture = "GPT2LMHeadModel",
      .prefix = "transformer.",
      .rules = {{"embedding.tokens.weight", {"transformer.wte.weight"}, false, true},
                {"embedding.positions.weight", {"transformer.wpe.weight"}},
                {"layers.*.attention.norm.weight", {"transformer.h.*.ln_1.weight"}},
                {"layers.*.attention.norm.bias", {"transformer.h.*.ln_1.bias"}},
                {"layers.*.attention.qkv.weight", {"transformer.h.*.attn.c_attn.weight"}, true},
                {"layers.*.attention.qkv.bias", {"transformer.h.*.attn.c_attn.bias"}},
                {"layers.*.attention.out.weight", {"transformer.h.*.attn.c_proj.weight"}, true},
                {"layers.*.attention.out.bias", {"transformer.h.*.attn.c_proj.bias"}},
                {"layers.*.mlp.norm.weight", {"transformer.h.*.ln_2.weight"}},
                {"layers.*.mlp.norm.bias", {"transformer.h.*.ln_2.bias"}},
                {"layers.*.mlp.up.weight", {"transformer.h.*.mlp.c_fc.weight"}, true},
                {"layers.*.mlp.up.bias", {"transformer.h.*.mlp.c_fc.bias"}},
                {"layers.*.mlp.down.weight", {"transformer.h.*.mlp.c_proj.weight"}, true},
                {"layers.*.mlp.down.bias", {"transformer.h.*.mlp.c_proj.bias"}},
                {"final_norm.weight", {"transformer.ln_f.weight"}},
                {"final_norm.bias", {"transformer.ln_f.bias"}},
                {"head.weight", {"lm_head.weight"}, false, true}},
      .ignored = {"transformer.h.*.attn.bias", "transformer.h.*.attn.masked_bias"},
  };
}

// The rotary embedding pairs channel i with i + D/2 on both sides, so that the rows of q and k keep their order.
FamilyNames llama_names() {
  return {
      .model_type = "llama",
      .architecture = "LlamaForCausalLM",
      .prefix = "model.",
      .rules = {{"embedding.tokens.weight", {"model.embed_tokens.weight"}, false, true},
                {"layers.*.attention.norm.weight", {"model.layers.*.input_layernorm.weight"}},
                {"layers.*.attention.qkv.weight",
                 {"model.layers.*.self_attn.q_proj.weight", "model.layers.*.self_attn.k_proj.weight",
                  "model.layers.*.self_attn.v_proj.weight"}},
                {"layers.*.attention.qkv.bias",
                 {"model.layers.*.self_attn.q_proj.bias", "model.layers.*.self_attn.k_proj.bias",
                  "model.layers.*.self_attn.v_proj.bias"}},
                {"layers.*.attention.out.weight", {"model.layers.*.self_attn.o_proj.weight"}},
                {"layers.*.attention.out.bias", {"model.layers.*.self_attn.o_proj.bias"}},
                {"layers.*.mlp.norm.weight", {"model.layers.*.post_attention_layernorm.weight"}},
                {"layers.*.mlp.gate_up.weight",
                 {"model.layers.*.mlp.gate_proj.weight", "model.layers.*.mlp.up_proj.weight"}},
                {"layers.*.mlp.gate_up.bias", {"model.layers.*.mlp.gate_proj.bias", "model.layers.*.mlp.up_proj.bias"}},
                {"layers.*.mlp.down.weight", {"model.layers.*.mlp.down_proj.weight"}},
                {"layers.*.mlp.down.bias", {"model.layers.*.mlp.down_proj.bias"}},
                {"final_norm.weight", {"model.norm.weight"}},
                {"head.weight", {"lm_head.weight"}, false, true}},
      .ignored = {"model.layers.*.self_attn.rotary_emb.inv_freq"},
  };
}

// The digits that stand for `*` in `name`, empty where the pattern has none; nothing where they do not match.
std::optional<std::string_view> match(std::string_view pattern, std::string_view name) {
  const size_t star = pattern.find('*');
  if (star == std::string_view::npos) return pattern == name ? std::optional(std::string_view()) : std::nullopt;
  const std::string_view before = pattern.substr(0, star);
  const std::string_view after = pattern.substr(star + 1);
  if (name.size() <= before.size() + after.size() || !name.starts_with(before) || !name.ends_with(after)) return {};
  const std::string_view digits = name.substr(before.size(), name.size() - before.size() - after.size());
  return digits.find_first_not_of("0123456789") == std::string_view::npos ? std::optional(digits) : std::nullopt;
}

std::string fill_in(std::string_view pattern, std::string_view layer) {
  std::string name(pattern);
  if (const size_t star = name.find('*'); star != std::string::npos) name.replace(star, 1, layer);
  return name;
}

Shape foreign_shape(const parallel::ParameterSpec& spec, int64_t rows, bool transposed) {
  if (spec.shape.rank() == 1) return {rows};
  return transposed ? Shape{spec.shape[1], rows} : Shape{rows, spec.shape[1]};
}

ForeignParameter apply(const NameRule& rule, std::string_view layer, const parallel::ParameterSpec& spec,
                       int64_t vocabulary) {
  ForeignParameter parameter{.spec = &spec, .tensors = {}, .transposed = rule.transposed};
  const int64_t rows = rule.by_token ? vocabulary : spec.shape[0];
  MEGALITH_CHECK(rows <= spec.shape[0], "'{}' has {} rows for {} tokens", spec.name, spec.shape[0], rows);
  parameter.padding_rows = spec.shape[0] - rows;
  const bool in_blocks = rule.theirs.size() > 1;
  MEGALITH_CHECK(!in_blocks || rule.theirs.size() == spec.blocks.size(), "'{}' is fused of {} matrices, not {}",
                 spec.name, spec.blocks.size(), rule.theirs.size());
  int64_t begin = 0;
  for (size_t i = 0; i < rule.theirs.size(); ++i) {
    const int64_t count = in_blocks ? spec.blocks[i] : rows;
    parameter.tensors.push_back({.name = fill_in(rule.theirs[i], layer),
                                 .shape = foreign_shape(spec, count, rule.transposed),
                                 .first_row = begin,
                                 .rows = count});
    begin += count;
  }
  return parameter;
}

}  // namespace

const FamilyNames& names_of(HuggingFaceFamily family) {
  static const FamilyNames gpt2 = gpt2_names();
  static const FamilyNames llama = llama_names();
  return family == HuggingFaceFamily::gpt2 ? gpt2 : llama;
}

std::vector<ForeignParameter> foreign_parameters(HuggingFaceFamily family, const parallel::ParameterTable& table,
                                                 int64_t vocabulary) {
  std::vector<ForeignParameter> parameters;
  for (const parallel::ParameterSpec& spec : table.specs()) {
    const size_t before = parameters.size();
    for (const NameRule& rule : names_of(family).rules) {
      if (const auto layer = match(rule.ours, spec.name)) parameters.push_back(apply(rule, *layer, spec, vocabulary));
    }
    MEGALITH_CHECK(parameters.size() == before + 1, "'{}' has {} places in a {} directory", spec.name,
                   parameters.size() - before, names_of(family).model_type);
  }
  return parameters;
}

bool is_ignored(HuggingFaceFamily family, std::string_view name) {
  const auto& patterns = names_of(family).ignored;
  return std::any_of(patterns.begin(), patterns.end(), [&](std::string_view pattern) { return match(pattern, name); });
}

}  // namespace megalith::checkpoint
