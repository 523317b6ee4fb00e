#pragma once

#include "model/linear.h"
#include "model/norm.h"

namespace megalith::model {

// The half of a block that works on each token alone: output = input + dropout(down(activate(up(norm(input))))).
class Mlp {
 public:
  struct Saved {
    NormStatistics statistics;
    Tensor normed;     // (N,C); absent where it is recomputed
    Tensor up;         // (N, up_width): before the activation function
    Tensor activated;  // (N,F); absent where it is recomputed
  };

  Mlp(const ModelConfig& config, const parallel::ParameterStore& store, int64_t layer);

  Saved allocate_saved(Arena& arena, int64_t tokens, bool keep_recomputable) const;

  void forward(const Context& context, Tensor input, Tensor output, const Saved& saved) const;
  // gradient (N,C): with respect to the output on entry, to the input on return. Overwrites saved.up. Biases as in
  // Attention.
  void backward(const Context& context, Tensor input, const Saved& saved, Tensor gradient,
                Tensor input_bias_gradient) const;
  Tensor output_bias_gradient() const { return drops_output() ? Tensor() : down_.bias_gradient(); }

 private:
  Tensor allocate_activated(const Context& context) const;
  void activate(const Context& context, Tensor up, Tensor activated) const;
  // up becomes its own gradient; the bias of up_ gets its own too.
  void activate_backward(const Context& context, Tensor d_activated, Tensor up) const;
  bool drops_output() const { return config_.hidden_dropout > 0.0; }

  const ModelConfig& config_;
  int64_t layer_;
  Norm norm_;
  Linear up_;
  Linear down_;
};

}  // namespace megalith::model
