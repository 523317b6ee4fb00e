#pragma once

#include "ops/op.h"

namespace megalith::ops {

// c (M,N) = op(a) op(b) + beta * c [+ bias] [+ addend], op(x) = x or its transpose.
//   a (M,K) or transposed (K,M); b (K,N) or transposed (N,K); rows may be strided. a and b share a dtype, or both are
//   fp8: then a (M,K) and b (N,K) transposed, and the product is multiplied by both inverses.
//   c: the dtype of a, or its main dtype (fp32 for bf16): a weight gradient accumulates there with beta = 1. Of fp8
//   operands bf16 or fp32.
//   bias (N) in the dtype of c, optional; it is added once, also with beta = 1.
//   addend (M,N) in the dtype of c, optional, with beta = 0: the residual stream, added before rounding.
//   gelu_input (M,N) in the dtype of c, optional, with neither beta nor addend: keeps the sum above, and c becomes its
//   GELU.
struct Gemm {
  Tensor a;
  bool transpose_a = false;
  Tensor b;
  bool transpose_b = false;
  Tensor c;
  float beta = 0.0F;  // 0 or 1; with 0, c may hold anything, NaN included
  Tensor bias = {};
  Tensor addend = {};
  Tensor gelu_input = {};
  const float* a_inverse = nullptr;  // Slot::inverse of a and b; both where they are fp8
  const float* b_inverse = nullptr;
  bool fast_accumulation = false;  // fp8 on a GPU: partial sums keep fewer bits than fp32 has
};
MEGALITH_OP(gemm, Gemm)

}  // namespace megalith::ops
