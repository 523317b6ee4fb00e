#pragma once

#include "ops/op.h"

namespace megalith::ops {

struct Fill {
  Tensor x;
  double value = 0.0;
};
MEGALITH_OP(fill, Fill)

// y = x, between floating-point types.
struct Cast {
  Tensor x;
  Tensor y;
};
MEGALITH_OP(cast, Cast)

// y = a + b, all (N,C) of one type; y may be the same memory as either.
struct Add {
  Tensor a;
  Tensor b;
  Tensor y;
};
MEGALITH_OP(add, Add)

// Partial sums of columns, at most one row per kColumnTile rows, in the main dtype: what an operation needs that sums
// columns in a fixed order.
constexpr int64_t kColumnTile = 128;
constexpr int64_t column_sum_scratch(int64_t rows, int64_t cols) {
  return ceil_div(rows, kColumnTile) * cols;
}

// dbias (C) += the column sums of dy (N,C); dbias in main dtype, scratch of column_sum_scratch(N, C) elements.
struct BiasGradient {
  Tensor dy;
  Tensor dbias;
  Tensor scratch;
};
MEGALITH_OP(bias_gradient, BiasGradient)

// x[r][c] = mean + std * the normal value of global element (row_offset + r) * global_cols + col_offset + c under
// `key`: the same on every layout.
struct NormalInit {
  Tensor x;
  uint64_t key = 0;
  double mean = 0.0;
  double std = 1.0;
  int64_t row_offset = 0;
  int64_t col_offset = 0;
  int64_t global_cols = 0;
};
MEGALITH_OP(normal_init, NormalInit)

}  // namespace megalith::ops
