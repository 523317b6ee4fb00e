#include "model/layers/linear.h"

#include "ops/elementwise.h"
#include "ops/operands/quantize.h"

namespace megalith::model {

using ops::Operand;

Linear::Linear(const parallel::ParameterStore& store, const Precision& precision, const std::string& name)
    : weight_(store[name + ".weight"]), format_(precision.of(name)) {
  if (store.contains(name + ".bias")) bias_ = store[name + ".bias"];
}

void Linear::forward(const Context& context, const Operand& x, Tensor y) const {
  const ArenaScope scope(context.scratch);
  ops::gemm(context.stream, with_operands(context, x, {.c = y, .bias = bias_.weight}));
}

void Linear::forward_onto(const Context& context, const Operand& x, Tensor residual, Tensor y) const {
  const ArenaScope scope(context.scratch);
  ops::gemm(context.stream, with_operands(context, x, {.c = y, .bias = bias_.weight, .addend = residual}));
}

void Linear::forward_gelu(const Context& context, const Operand& x, Tensor gelu_input, Tensor y) const {
  const ArenaScope scope(context.scratch);
  ops::gemm(context.stream, with_operands(context, x, {.c = y, .bias = bias_.weight, .gelu_input = gelu_input}));
}

void Linear::forward_partial(const Context& context, const Operand& x, Tensor y) const {
  const ArenaScope scope(context.scratch);
  const Tensor bias = context.tensor.rank() == 0 ? bias_.weight : Tensor();
  ops::gemm(context.stream, with_operands(context, x, {.c = y, .bias = bias}));
}

ops::Gemm Linear::with_operands(const Context& context, const Operand& x, ops::Gemm product) const {
  const Operand w = weight(context, Sides::rows);
  product.a = x.rows;
  product.b = w.rows;
  product.transpose_b = true;
  product.a_inverse = x.slot.inverse;
  product.b_inverse = w.slot.inverse;
  product.fast_accumulation = format_.input.is_scaled();
  return product;
}

void Linear::backward_input(const Context& context, const Operand& dy, Tensor dx) const {
  const ArenaScope scope(context.scratch);
  const Operand w = weight(context, Sides::columns);
  ops::gemm(context.stream, {.a = dy.rows,
                             .b = w.columns ? w.columns : w.rows,
                             .transpose_b = static_cast<bool>(w.columns),
                             .c = dx,
                             .a_inverse = dy.slot.inverse,
                             .b_inverse = w.slot.inverse});
}

void Linear::backward_weight(const Context& context, const Operand& dy, const Operand& x) const {
  const bool is_turned = static_cast<bool>(dy.columns);
  const ops::Gemm product{.a = is_turned ? dy.columns : dy.rows,
                          .transpose_a = !is_turned,
                          .b = is_turned ? x.columns : x.rows,
                          .transpose_b = is_turned,
                          .c = weight_.gradient,
                          .beta = context.gradient_beta(),
                          .a_inverse = dy.slot.inverse,
                          .b_inverse = x.slot.inverse};
  if (context.deferred != nullptr) {
    context.deferred->add(product);
  } else {
    ops::gemm(context.stream, product);
  }
}

void Linear::backward_bias(const Context& context, Tensor dy) const {
  if (!bias_.weight) return;
  const ArenaScope scope(context.scratch);
  const Tensor scratch = context.scratch.allocate("bias.partial_sums", bias_.gradient.dtype,
                                                  {ops::column_sum_scratch(dy.rows(), dy.cols())});
  ops::bias_gradient(context.stream, {.dy = dy, .dbias = bias_.gradient, .scratch = scratch});
}

void Linear::cast_weight(const Context& context) const {
  if (format_.kept_weight) cast_operand(context, format_.weight, weight_.weight, format_.kept_weight);
}

Operand Linear::weight(const Context& context, Sides side) const {
  if (!format_.weight.is_scaled()) return weight_.weight;
  const Operand& kept = format_.kept_weight;
  if (side == Sides::rows ? kept.rows : kept.columns) return kept;
  if (!kept) {
    const Operand made = allocate_operand(context.scratch, "fp8.weight", format_.weight, weight_.weight.rows(),
                                          weight_.weight.cols(), side);
    cast_operand(context, format_.weight, weight_.weight, made);
    return made;
  }
  Operand turned = kept;
  turned.columns = context.scratch.allocate("fp8.weight", format_.weight.dtype, {kept.rows.cols(), kept.rows.rows()});
  ops::transpose(context.stream, {.rows = kept.rows, .columns = turned.columns});
  return turned;
}

}  // namespace megalith::model
