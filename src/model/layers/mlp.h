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
    Tensor normed;     // (rows, C); absent where it is recomputed
    Tensor up;         // (tokens, up_width): before the activation function
    Tensor activated;  // (tokens, F); absent where it is recomputed
  };

  Mlp(const ModelConfig& config, const parallel::ParameterStore& store, int64_t layer);

  Saved allocate_saved(Arena& arena, const ActivationShape& shape, bool keep_recomputable) const;

  void forward(const Context& context, Tensor input, Tensor output, const Saved& saved) const;
  // gradient (rows, C): with respect to the output on entry, to the input on return. Overwrites saved.up. Biases as in
  // Attention.
  void backward(const Context& context, Tensor input, const Saved& saved, Tensor gradient,
                Tensor input_bias_gradient) const;
  Tensor output_bias_gradient() const { return down_.bias_gradient(); }
  // Makes it from the gradient of the output (rows, C), where that came from elsewhere.
  void backward_output_bias(const Context& context, Tensor gradient) const { down_.backward_bias(context, gradient); }

 private:
  Tensor allocate_activated(Arena& arena, const Context& context) const;
  void activate(const Context& context, Tensor up, Tensor activated) const;
  // up becomes its own gradient; the bias of up_ gets its own too.
  void activate_backward(const Context& context, Tensor d_activated, Tensor up) const;

  const ModelConfig& config_;
  Norm norm_;
  Linear up_;
  ResidualProjection down_;
};

}  // namespace megalith::model
