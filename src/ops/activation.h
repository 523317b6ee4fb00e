#pragma once

#include "ops/elementwise.h"
#include "ops/op.h"

namespace megalith::ops {

// y = 0.5 x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))).   x, y (N,F)
struct GeluForward {
  Tensor x;
  Operand y;
};
MEGALITH_OP(gelu_forward, GeluForward)

// dx may be the same memory as dy or x. dbias (F) main dtype, optional: += the column sums of dx, with scratch of
// column_sum_scratch(N, F) elements, main dtype.
struct GeluBackward {
  Tensor dy;
  Tensor x;
  Operand dx;
  Tensor dbias = {};
  Tensor scratch = {};
};
MEGALITH_OP(gelu_backward, GeluBackward)

// y = silu(gate) * up.   gate_up (N,2F): gate in the first F columns, up in the last F; y (N,F)
struct SwigluForward {
  Tensor gate_up;
  Operand y;
};
MEGALITH_OP(swiglu_forward, SwigluForward)

// dgate_up (N,2F) may be the same memory as gate_up.
struct SwigluBackward {
  Tensor dy;
  Tensor gate_up;
  Operand dgate_up;
};
MEGALITH_OP(swiglu_backward, SwigluBackward)

}  // namespace megalith::ops
