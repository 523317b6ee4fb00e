#include "model/linear.h"

#include "ops/elementwise.h"
#include "ops/gemm.h"

namespace megalith::model {

Linear::Linear(const parallel::ParameterStore& store, const std::string& name) : weight_(store[name + ".weight"]) {
  if (store.table().contains(name + ".bias")) bias_ = store[name + ".bias"];
}

void Linear::forward(const Context& context, Tensor x, Tensor y) const {
  ops::gemm(context.stream, {.a = x, .b = weight_.weight, .transpose_b = true, .c = y, .bias = bias_.weight});
}

void Linear::backward_input(const Context& context, Tensor dy, Tensor dx) const {
  ops::gemm(context.stream, {.a = dy, .b = weight_.weight, .c = dx});
}

void Linear::backward_weight(const Context& context, Tensor dy, Tensor x) const {
  ops::gemm(context.stream, {.a = dy, .transpose_a = true, .b = x, .c = weight_.gradient, .beta = 1.0F});
  if (bias_.weight) ops::bias_gradient(context.stream, {.dy = dy, .dbias = bias_.gradient});
}

}  // namespace megalith::model
