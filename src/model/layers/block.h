#pragma once

#include "model/layers/attention.h"
#include "model/layers/mlp.h"

namespace megalith::model {

// One transformer layer: attention, then MLP, each around a residual connection.
class Block {
 public:
  struct Saved {
    Attention::Saved attention;
    Tensor middle;  // (rows, C): the residual stream between the halves
    Mlp::Saved mlp;
  };

  Block(const ModelConfig& config, const parallel::ParameterStore& store, const Precision& precision,
        const RopeTable& rope, int64_t layer);

  // Room for what backward reads, under the given policy (none or selective).
  Saved allocate_saved(Arena& arena, const ActivationShape& shape, Recompute policy) const;

  // input, output (rows, C). With Context::casts_weights the fp8 copies of the weights are made first.
  void forward(const Context& context, Tensor input, Tensor output, const Saved& saved) const;
  // gradient (rows, C): with respect to the output on entry, to the input on return. `input_bias_gradient`: what the
  // block before answers as output_bias_gradient(). Whoever makes `gradient` has made that of this block.
  void backward(const Context& context, Tensor input, const Saved& saved, Tensor gradient,
                Tensor input_bias_gradient) const;
  Tensor output_bias_gradient() const { return mlp_.output_bias_gradient(); }
  bool is_scaled() const { return attention_.is_scaled(); }
  void backward_output_bias(const Context& context, Tensor gradient) const {
    mlp_.backward_output_bias(context, gradient);
  }

 private:
  const ModelConfig& config_;
  Attention attention_;
  Mlp mlp_;
};

}  // namespace megalith::model
