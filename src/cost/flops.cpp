#include "cost/flops.h"

#include "config/derived.h"

namespace megalith::cost {
namespace {

struct LayerShape {
  int64_t hidden;
  int64_t query;      // width of all query heads
  int64_t key_value;  // width of all key heads, and of all value heads
  int64_t mlp_in;     // gate and up side by side for swiglu
  int64_t mlp_out;
};

LayerShape layer_shape(const config::Model& model) {
  const int64_t head = config::kv_channels(model);
  const int64_t ffn = config::ffn_hidden_size(model);
  return {.hidden = model.hidden_size,
          .query = model.num_attention_heads * head,
          .key_value = config::num_query_groups(model) * head,
          .mlp_in = model.activation == config::Activation::gelu ? ffn : 2 * ffn,
          .mlp_out = ffn};
}

int64_t layer_weights(const LayerShape& s) {
  const int64_t attention = s.hidden * (s.query + 2 * s.key_value) + s.query * s.hidden;
  return attention + s.hidden * s.mlp_in + s.mlp_out * s.hidden;
}

// Forward: scores and their product with the values, 2 FLOPs per multiply-add and channel; backward twice as much.
double attention_flops(const config::Model& model, double pairs) {
  return 12.0 * static_cast<double>(model.num_layers) * static_cast<double>(layer_shape(model).query) * pairs;
}

double matmul_flops(const config::Model& model, int64_t vocab) {
  return 6.0 * static_cast<double>(matmul_weights(model, vocab)) * static_cast<double>(model.encoder_seq_length);
}

}  // namespace

int64_t parameter_count(const config::Model& model, int64_t vocab) {
  const LayerShape s = layer_shape(model);
  const int64_t norm = (model.normalization == config::Normalization::layernorm ? 2 : 1) * s.hidden;
  const int64_t biases = model.bias ? s.query + 2 * s.key_value + s.hidden + s.mlp_in + s.hidden : 0;
  const int64_t layers = model.num_layers * (layer_weights(s) + biases + 2 * norm);
  const bool learned = model.position_embedding_type == config::Positions::learned_absolute;
  const int64_t positions = learned ? config::max_position_embeddings(model) * s.hidden : 0;
  const int64_t embeddings = (model.share_embeddings_and_output_weights ? 1 : 2) * vocab * s.hidden;
  return embeddings + positions + layers + norm;
}

int64_t matmul_weights(const config::Model& model, int64_t vocab) {
  return model.num_layers * layer_weights(layer_shape(model)) + vocab * model.hidden_size;
}

double model_flops_per_sample(const config::Model& model, int64_t vocab) {
  const auto tokens = static_cast<double>(model.encoder_seq_length);
  return matmul_flops(model, vocab) + attention_flops(model, tokens * tokens);
}

double causal_flops_per_sample(const config::Model& model, int64_t vocab) {
  const auto tokens = static_cast<double>(model.encoder_seq_length);
  return matmul_flops(model, vocab) + attention_flops(model, tokens * (tokens + 1) / 2);
}

}  // namespace megalith::cost
