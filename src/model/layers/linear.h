#pragma once

#include <string>

#include "model/context.h"
#include "model/operands.h"
#include "ops/gemm.h"

namespace megalith::model {

// y = x W^T + b
class Linear {
 public:
  Linear(const parallel::ParameterStore& store, const Precision& precision, const std::string& name);

  // How its GEMMs read x, and the gradient of y.
  const OperandFormat& input() const { return format_.input; }
  const OperandFormat& gradient() const { return format_.gradient; }

  // x (N,in) -> y (N,out)
  void forward(const Context& context, const ops::Operand& x, Tensor y) const;
  // y = residual + x W^T + b
  void forward_onto(const Context& context, const ops::Operand& x, Tensor residual, Tensor y) const;
  // y = GELU(gelu_input), gelu_input = x W^T + b
  void forward_gelu(const Context& context, const ops::Operand& x, Tensor gelu_input, Tensor y) const;
  // What this rank adds to y where ranks divide the columns of W: x W^T, on the first of them with b.
  void forward_partial(const Context& context, const ops::Operand& x, Tensor y) const;
  // dy (N,out) -> dx (N,in)
  void backward_input(const Context& context, const ops::Operand& dy, Tensor dx) const;
  // The gradient of W; dy and x are in memory of context.kept() or what outlives it.
  void backward_weight(const Context& context, const ops::Operand& dy, const ops::Operand& x) const;
  // The gradient of b, where there is one.
  void backward_bias(const Context& context, Tensor dy) const;
  // Where an operation that has dy at hand may add its column sums instead; absent without a bias.
  Tensor bias_gradient() const { return bias_.gradient; }

  // Makes the fp8 copies of W that are kept for the step, where there are any.
  void cast_weight(const Context& context) const;

 private:
  // The product of x and W^T, of which all else is given; W may be in scratch.
  ops::Gemm with_operands(const Context& context, const ops::Operand& x, ops::Gemm product) const;
  // W as rows or columns: the copy that is kept, or one in scratch.
  ops::Operand weight(const Context& context, Sides side) const;

  parallel::Parameter weight_;
  parallel::Parameter bias_;
  LinearFormat format_;
};

}  // namespace megalith::model
