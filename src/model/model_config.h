#pragma once

#include <string>

#include "config/run_config.h"
#include "ops/norm.h"

namespace megalith::model {

enum class Recompute {
  none,       // everything that backward reads is kept
  selective,  // outputs of norms and activation functions are made again in backward
  full,       // only the input of each block is kept
};

// How the scale of an fp8 operand follows from its numbers.
enum class Scaling {
  none,     // it is no fp8
  delayed,  // from the largest number of the steps before: constant within a step
  current,  // from the largest number of this very tensor
};

// In which formats the four linear layers of a block compute; everything else computes in ModelConfig::compute.
struct PrecisionRecipe {
  Scaling scaling = Scaling::none;
  DType forward = DType::e4m3;   // inputs and weights
  DType gradient = DType::e5m2;  // of the outputs
  int margin = 0;                // scales leave a factor of 2^margin to spare
  int64_t history = 1024;        // steps that delayed scaling looks back
  bool most_recent = false;      // it takes the last of them, not the largest
  // Blocks that stay in ModelConfig::compute.
  int64_t plain_at_start = 0;
  int64_t plain_at_end = 0;
  // fp8 copies of weights that a step keeps: rows and columns, or rows, which backward transposes for each micro batch,
  // or none, and each pass casts for itself.
  int64_t weight_copies = 2;
};

// The architecture: what the paper says. GPT-3 and Llama-3 are two fillings of it.
struct ModelConfig {
  int64_t layers = 0;
  int64_t hidden = 0;
  int64_t ffn = 0;
  int64_t heads = 0;
  int64_t kv_heads = 0;
  int64_t head_dim = 0;
  int64_t vocabulary = 0;
  int64_t padded_vocabulary = 0;
  int64_t max_positions = 0;
  bool learned_positions = true;  // else RoPE
  double rotary_base = 10000.0;
  config::RopeScaling rope_scaling = {};
  ops::NormKind norm = ops::NormKind::layer_norm;
  bool swiglu = false;  // else GELU
  bool bias = true;
  bool tied_embeddings = true;
  double epsilon = 1e-5;
  double init_std = 0.02;
  double hidden_dropout = 0.0;
  double attention_dropout = 0.0;
  bool masks_documents = false;  // a token sees no other document than its own
  DType compute = DType::f32;
  PrecisionRecipe precision = {};
  Recompute recompute = Recompute::none;
  // Under full recompute: how many blocks are made again together, or whether only so many of each chunk's first are,
  // one by one, and the others are kept.
  int64_t recompute_layers = 1;
  bool recompute_first_layers = false;

  int64_t query_width() const { return heads * head_dim; }
  int64_t kv_width() const { return kv_heads * head_dim; }
  int64_t qkv_width() const { return query_width() + 2 * kv_width(); }
  // Width of the first MLP matrix: gate and up side by side under SwiGLU.
  int64_t up_width() const { return swiglu ? 2 * ffn : ffn; }
  bool is_scaled(int64_t layer) const {
    return precision.scaling != Scaling::none && layer >= precision.plain_at_start &&
           layer < layers - precision.plain_at_end;
  }
  bool has_norm_bias() const { return norm == ops::NormKind::layer_norm; }
};

// What one of `tensor` ranks computes of each layer: some of its heads and of its MLP's channels.
ModelConfig part_of_layers(ModelConfig config, int64_t tensor);

// From an effective (validated) run config and the size of its tokenizer's vocabulary.
ModelConfig make_model_config(const config::Run& run, int64_t vocabulary);

}  // namespace megalith::model
