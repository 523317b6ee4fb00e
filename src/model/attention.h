#pragma once

#include "model/linear.h"
#include "model/norm.h"

namespace megalith::model {

// cos and sin of every (position, channel pair), (positions, head_dim / 2) f32; empty for learned positions.
struct RopeTable {
  Tensor cos;
  Tensor sin;
};
RopeTable make_rope_table(const ModelConfig& config, Stream& stream, Arena& arena);

// The half of a block that mixes tokens: output = input + dropout(project(attention(qkv(norm(input))))).
class Attention {
 public:
  struct Saved {
    NormStatistics statistics;
    Tensor normed;  // (N,C); absent where it is recomputed
    Tensor qkv;     // (N, qkv_width), rotated
    Tensor mixed;   // (N, query_width)
    Tensor log_sum_exp;
  };

  Attention(const ModelConfig& config, const parallel::ParameterStore& store, const RopeTable& rope, int64_t layer);

  Saved allocate_saved(Arena& arena, int64_t batch, int64_t length, bool keep_normed) const;

  // input, output (N,C)
  void forward(const Context& context, Tensor input, Tensor output, const Saved& saved) const;
  // gradient (N,C): with respect to the output on entry, to the input on return. Where the bias of the layer that made
  // the input has its gradient made here, `input_bias_gradient` is it.
  void backward(const Context& context, Tensor input, const Saved& saved, Tensor gradient,
                Tensor input_bias_gradient) const;
  // The output's own bias, for whoever makes its gradient on the way back; absent where backward() makes it itself.
  Tensor output_bias_gradient() const { return drops_output() ? Tensor() : out_.bias_gradient(); }

 private:
  struct Heads {
    Tensor q, k, v;
  };
  Heads split(Tensor qkv) const;
  void rotate(const Context& context, Tensor qkv, bool inverse) const;
  Heads through_cache(const Context& context, const Heads& heads) const;
  Tensor allocate_attention_scratch(const Context& context, int64_t keys) const;
  double scale() const;
  bool drops_output() const { return config_.hidden_dropout > 0.0; }

  const ModelConfig& config_;
  int64_t layer_;
  RopeTable rope_;
  Norm norm_;
  Linear qkv_;
  Linear out_;
};

}  // namespace megalith::model
