#pragma once

#include "model/layers/linear.h"
#include "model/model_config.h"

namespace megalith::model {

// y = residual + dropout(x W^T + b): how each half of a block returns to the residual stream. Tensor-parallel ranks
// divide the columns of W and add up what each makes of them.
class ResidualProjection {
 public:
  ResidualProjection(const ModelConfig& config, const parallel::ParameterStore& store, const Precision& precision,
                     const std::string& name, int64_t layer, DropoutSite site);

  const OperandFormat& input() const { return linear_.input(); }
  void cast_weight(const Context& context) const { linear_.cast_weight(context); }

  // x (tokens, in); residual, y (rows, C)
  void forward(const Context& context, const ops::Operand& x, Tensor residual, Tensor y) const;
  // The gradient of the product (tokens, C), from that of y (rows, C): `gradient` itself where they are the same and
  // it need not be kept, or in memory of context.kept(). Makes the gradient of b unless bias_gradient() is there for
  // others.
  ops::Operand backward_product(const Context& context, Tensor gradient) const;
  void backward_input(const Context& context, const ops::Operand& d_product, Tensor dx) const {
    linear_.backward_input(context, d_product, dx);
  }
  void backward_weight(const Context& context, const ops::Operand& d_product, const ops::Operand& x) const {
    linear_.backward_weight(context, d_product, x);
  }

  // b, for whoever makes the gradient of y and can sum its columns on the way; absent where backward_product() does it.
  Tensor bias_gradient() const { return drops() ? Tensor() : linear_.bias_gradient(); }
  // Sums them here: `gradient` (rows, C) is that of y and came from elsewhere.
  void backward_bias(const Context& context, Tensor gradient) const {
    if (!drops()) linear_.backward_bias(context, gradient);
  }

 private:
  bool drops() const { return config_.hidden_dropout > 0.0; }
  ops::Dropout dropout(const Context& context) const {
    return context.dropout_of_rows(config_.hidden_dropout, layer_, site_);
  }

  const ModelConfig& config_;
  int64_t layer_;
  DropoutSite site_;
  Linear linear_;
};

}  // namespace megalith::model
