#pragma once

#include "core/rng.h"
#include "ops/op.h"

namespace megalith::ops {

// What a dropout draws from: DropoutKey, with rows mapped to (sample, position). Row r of a micro batch belongs to
// sample sample_ids[r / length] at position r % length.
struct Dropout {
  double probability = 0.0;
  DropoutKey key = {};
  Tensor sample_ids = {};  // (B) i64, in the memory of the stream's device
  int64_t length = 0;
};

// y = residual + keep(x) / (1 - p).   x, residual, y (N,C); y may be the same memory as either. Without a residual:
// absent.
struct DropoutAdd {
  Tensor x;
  Tensor residual = {};
  Tensor y;
  Dropout dropout = {};
};
MEGALITH_OP(dropout_add, DropoutAdd)

}  // namespace megalith::ops
