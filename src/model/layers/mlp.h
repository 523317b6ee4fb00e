#pragma once

#include "model/layers/linear.h"
#include "model/layers/norm.h"
#include "model/layers/residual_projection.h"

namespace megalith::model {

// The half of a block that works on each token alone: output = input + dropout(down(activate(up(norm(input))))).
class Mlp {
 public:
  struct Saved {
    NormStatistics statistics;
    ops::Operand normed;     // (rows, C); absent where it is recomputed
    Tensor up;               // (tokens, up_width): before the activation function
    ops::Operand activated;  // (tokens, F); absent where it is recomputed
  };

  Mlp(const ModelConfig& config, const parallel::ParameterStore& store, const Precision& precision, int64_t layer);

  Saved allocate_saved(Arena& arena, const ActivationShape& shape, bool keep_recomputable) const;

  void forward(const Context& context, Tensor input, Tensor output, const Saved& saved) const;
  // gradient (rows, C): with respect to the output on entry, to the input on return. May overwrite saved.up. Biases as
  // in Attention.
  void backward(const Context& context, Tensor input, const Saved& saved, Tensor gradient,
                Tensor input_bias_gradient) const;
  Tensor output_bias_gradient() const { return down_.bias_gradient(); }
  // As Linear::cast_weight().
  void cast_weights(const Context& context) const;
  // Makes it from the gradient of the output (rows, C), where that came from elsewhere.
  void backward_output_bias(const Context& context, Tensor gradient) const { down_.backward_bias(context, gradient); }

 private:
  void activate(const Context& context, Tensor up, const ops::Operand& activated) const;
  // Fills the gradient of up, which may be in the memory of up; the bias of up_ gets its own too.
  void activate_backward(const Context& context, Tensor d_activated, Tensor up, const ops::Operand& d_up) const;
  void swiglu_backward(const Context& context, Tensor d_activated, Tensor up, const ops::Operand& d_up) const;

  const ModelConfig& config_;
  Norm norm_;
  Linear up_;
  ResidualProjection down_;
};

}  // namespace megalith::model
