#pragma once

#include "ops/op.h"

namespace megalith::ops {

// y = x (N,C) in fp8; y holds x * scale of its slot, rounded, and what is beyond the largest number as that.
//   dbias (C) main dtype, optional: += the column sums of x, with scratch of column_sum_scratch(N, C) elements, main
//   dtype.
struct Quantize {
  Tensor x;
  Operand y;
  Tensor dbias = {};
  Tensor scratch = {};
};
MEGALITH_OP(quantize, Quantize)

// columns (C,N) = rows (N,C) transposed, both of one fp8 type: for rows that came from other ranks.
struct Transpose {
  Tensor rows;
  Tensor columns;
};
MEGALITH_OP(transpose, Transpose)

}  // namespace megalith::ops
