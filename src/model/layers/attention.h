#pragma once

#include "model/layers/attention_core.h"
#include "model/layers/linear.h"
#include "model/layers/norm.h"
#include "model/layers/residual_projection.h"

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
    ops::Operand normed;  // (rows, C); absent where it is recomputed
    Tensor qkv;           // (tokens, qkv_width), rotated
    Tensor mixed;         // (tokens, query_width)
    ops::Operand turned;  // mixed in fp8, for the gradient of the weights; absent where backward casts once more
    Tensor log_sum_exp;
  };

  Attention(const ModelConfig& config, const parallel::ParameterStore& store, const Precision& precision,
            const RopeTable& rope, int64_t layer);

  Saved allocate_saved(Arena& arena, const ActivationShape& shape, bool keep_recomputable) const;

  // input, output (rows, C)
  void forward(const Context& context, Tensor input, Tensor output, const Saved& saved) const;
  // gradient (rows, C): with respect to the output on entry, to the input on return. Where the bias of the layer that
  // made the input has its gradient made here, `input_bias_gradient` is it.
  void backward(const Context& context, Tensor input, const Saved& saved, Tensor gradient,
                Tensor input_bias_gradient) const;
  // The output's own bias, for whoever makes its gradient on the way back; absent where backward() makes it itself.
  Tensor output_bias_gradient() const { return out_.bias_gradient(); }
  bool is_scaled() const { return qkv_.input().is_scaled(); }
  // As Linear::cast_weight().
  void cast_weights(const Context& context) const;

 private:
  void rotate(const Context& context, Tensor qkv, bool inverse) const;
  ops::Operand mixed_for_product(const Context& context, const Saved& saved) const;
  ops::Operand mixed_for_gradient(const Context& context, const Saved& saved) const;
  // Of ranks with the same key and value heads the first gets the whole gradient of these, the others zeros.
  void add_up_shared_heads(const Context& context, Tensor d_qkv) const;
  // d_qkv as an operand; makes the gradient of the bias.
  ops::Operand qkv_gradient(const Context& context, Tensor d_qkv) const;

  const ModelConfig& config_;
  RopeTable rope_;
  Norm norm_;
  Linear qkv_;
  AttentionCore core_;
  ResidualProjection out_;
};

}  // namespace megalith::model
