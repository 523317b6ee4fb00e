#pragma once

#include "ops/op.h"

namespace megalith::ops {

// The rows of a batch by their keys, which are ascending; those of equal keys in the order in which they come.
struct RowOrder {
  Tensor keys;  // (N) i32
  Tensor rows;  // (N) i32

  explicit operator bool() const { return static_cast<bool>(rows); }
};

// order = the rows [0, N) by their keys: given (N) i32 in [0, limit). A GPU puts a row with any other key last.
struct OrderRows {
  Tensor given;
  int64_t limit = 0;
  RowOrder order;
  Tensor scratch = {};  // i32, row_order_scratch(N) elements
};
MEGALITH_OP(order_rows, OrderRows)

// A GPU makes keys and rows before it sorts them, needs as much again while it does, and some tables.
constexpr int64_t row_order_scratch(Device device, int64_t rows) {
  constexpr int64_t kTables = 1 << 20;
  return device == Device::cpu ? 0 : 4 * rows + kTables;
}

}  // namespace megalith::ops
