#include "model/model_config.h"

#include <algorithm>

#include "config/derived.h"

namespace megalith::model {

namespace {
Recompute recompute_of(config::Granularity granularity) {
  switch (granularity) {
    case config::Granularity::none:
      return Recompute::none;
    case config::Granularity::selective:
      return Recompute::selective;
    case config::Granularity::full:
      return Recompute::full;
  }
  fail(ErrorKind::internal, "internal error: an unknown granularity");
}
}  // namespace

ModelConfig part_of_layers(ModelConfig config, int64_t tensor) {
  config.heads = div_exact(config.heads, tensor);
  config.kv_heads = std::max<int64_t>(1, config.kv_heads / tensor);
  config.ffn = div_exact(config.ffn, tensor);
  return config;
}

namespace {
PrecisionRecipe precision_of(const config::Model& m) {
  if (!m.fp8) return {};
  return {.scaling = m.fp8_recipe == config::Fp8Recipe::delayed ? Scaling::delayed : Scaling::current,
          .gradient = m.fp8_hybrid ? DType::e5m2 : DType::e4m3,
          .margin = static_cast<int>(m.fp8_margin),
          .history = m.fp8_amax_history_len,
          .most_recent = m.fp8_amax_compute_algo == config::AmaxRule::most_recent,
          .plain_at_start = m.first_last_layers_bf16 ? m.num_layers_at_start_in_bf16 : 0,
          .plain_at_end = m.first_last_layers_bf16 ? m.num_layers_at_end_in_bf16 : 0,
          .weight_copies = m.fp8_weight_copies};
}
}  // namespace

ModelConfig make_model_config(const config::Run& run, int64_t vocabulary) {
  const config::Model& m = run.model;
  return {
      .layers = m.num_layers,
      .hidden = m.hidden_size,
      .ffn = m.ffn_hidden_size,
      .heads = m.num_attention_heads,
      .kv_heads = m.num_query_groups,
      .head_dim = m.kv_channels,
      .vocabulary = vocabulary,
      .padded_vocabulary = config::padded_vocab(vocabulary, m.make_vocab_size_divisible_by),
      // A rotary model may read further than it was made for.
      .max_positions = std::max(m.max_position_embeddings, m.encoder_seq_length),
      .learned_positions = m.position_embedding_type == config::Positions::learned_absolute,
      .rotary_base = m.rotary_base,
      .rope_scaling = m.rope_scaling,
      .norm = m.normalization == config::Normalization::rmsnorm ? ops::NormKind::rms_norm : ops::NormKind::layer_norm,
      .swiglu = m.activation == config::Activation::swiglu,
      .bias = m.bias,
      .tied_embeddings = m.share_embeddings_and_output_weights,
      .epsilon = m.layernorm_epsilon,
      .init_std = m.init_method_std,
      .hidden_dropout = m.hidden_dropout,
      .attention_dropout = m.attention_dropout,
      .masks_documents = m.data.reset_attention_mask,
      .compute = config::compute_dtype(run.trainer),
      .precision = precision_of(m),
      .recompute = recompute_of(m.activations_checkpoint_granularity),
      .recompute_layers = std::max<int64_t>(1, m.activations_checkpoint_num_layers),
      .recompute_first_layers = m.activations_checkpoint_method == config::RecomputeMethod::block,
  };
}

}  // namespace megalith::model
