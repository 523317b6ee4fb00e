#pragma once

#include <string>

#include "model/context.h"
#include "parallel/placement/parameter_store.h"

namespace megalith::model {

// y = x W^T + b
class Linear {
 public:
  Linear(const parallel::ParameterStore& store, const std::string& name);

  // x (N,in) -> y (N,out)
  void forward(const Context& context, Tensor x, Tensor y) const;
  // y = residual + x W^T + b
  void forward_onto(const Context& context, Tensor x, Tensor residual, Tensor y) const;
  // y = GELU(gelu_input), gelu_input = x W^T + b
  void forward_gelu(const Context& context, Tensor x, Tensor gelu_input, Tensor y) const;
  // What this rank adds to y where ranks divide the columns of W: x W^T, on the first of them with b.
  void forward_partial(const Context& context, Tensor x, Tensor y) const;
  // dy (N,out) -> dx (N,in)
  void backward_input(const Context& context, Tensor dy, Tensor dx) const;
  // The gradient of W; dy and x are in memory of context.kept() or what outlives it.
  void backward_weight(const Context& context, Tensor dy, Tensor x) const;
  // The gradient of b, where there is one.
  void backward_bias(const Context& context, Tensor dy) const;
  // Where an operation that has dy at hand may add its column sums instead; absent without a bias.
  Tensor bias_gradient() const { return bias_.gradient; }

 private:
  parallel::Parameter weight_;
  parallel::Parameter bias_;
};

}  // namespace megalith::model
