#include "model/layers/linear.h"

#include "ops/elementwise.h"
#include "ops/gemm.h"

namespace megalith::model {

Linear::Linear(const parallel::ParameterStore& store, const std::string& name) : weight_(store[name + ".weight"]) {
  if (store.contains(name + ".bias")) bias_ = store[name + ".bias"];
}

void Linear::forward(const Context& context, Tensor x, Tensor y) const {
  ops::gemm(context.stream, {.a = x, .b = weight_.weight, .transpose_b = true, .c = y, .bias = bias_.weight});
}

void Linear::forward_onto(const Context& context, Tensor x, Tensor residual, Tensor y) const {
  ops::gemm(context.stream,
            {.a = x, .b = weight_.weight, .transpose_b = true, .c = y, .bias = bias_.weight, .addend = residual});
}

void Linear::forward_gelu(const Context& context, Tensor x, Tensor gelu_input, Tensor y) const {
  ops::gemm(context.stream,
            {.a = x, .b = weight_.weight, .transpose_b = true, .c = y, .bias = bias_.weight, .gelu_input = gelu_input});
}

void Linear::forward_partial(const Context& context, Tensor x, Tensor y) const {
  const Tensor bias = context.tensor.rank() == 0 ? bias_.weight : Tensor();
  ops::gemm(context.stream, {.a = x, .b = weight_.weight, .transpose_b = true, .c = y, .bias = bias});
}

void Linear::backward_input(const Context& context, Tensor dy, Tensor dx) const {
  ops::gemm(context.stream, {.a = dy, .b = weight_.weight, .c = dx});
}

void Linear::backward_weight(const Context& context, Tensor dy, Tensor x) const {
  const ops::Gemm product{.a = dy, .transpose_a = true, .b = x, .c = weight_.gradient, .beta = context.gradient_beta()};
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

}  // namespace megalith::model
