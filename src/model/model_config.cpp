#include "model/model_config.h"

#include <algorithm>

#include "config/layout.h"

namespace megalith::model {

namespace {
Recompute parse_recompute(const std::string& granularity) {
  if (granularity.empty()) return Recompute::none;
  if (granularity == "selective") return Recompute::selective;
  if (granularity == "full") return Recompute::full;
  user_error("model.activations_checkpoint_granularity is '{}'; use null, selective or full", granularity);
}
}  // namespace

ModelConfig part_of_layers(ModelConfig config, int64_t tensor) {
  config.heads = div_exact(config.heads, tensor);
  config.kv_heads = std::max<int64_t>(1, config.kv_heads / tensor);
  config.ffn = div_exact(config.ffn, tensor);
  return config;
}

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
      .learned_positions = m.position_embedding_type == "learned_absolute",
      .rotary_base = m.rotary_base,
      .rope_scaling = m.rope_scaling,
      .norm = m.normalization == "rmsnorm" ? ops::NormKind::rms_norm : ops::NormKind::layer_norm,
      .swiglu = m.activation == "swiglu",
      .bias = m.bias,
      .tied_embeddings = m.share_embeddings_and_output_weights,
      .epsilon = m.layernorm_epsilon,
      .init_std = m.init_method_std,
      .hidden_dropout = m.hidden_dropout,
      .attention_dropout = m.attention_dropout,
      .masks_documents = m.data.reset_attention_mask,
      .compute = config::compute_dtype(run.trainer),
      .recompute = parse_recompute(m.activations_checkpoint_granularity),
      .recompute_layers = std::max<int64_t>(1, m.activations_checkpoint_num_layers),
      .recompute_first_layers = m.activations_checkpoint_method == "block",
  };
}

}  // namespace megalith::model
