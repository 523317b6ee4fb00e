#pragma once

#include "core/rng.h"
#include "ops/op.h"

namespace megalith::ops {

// What a dropout draws from: DropoutKey, with rows mapped to (sample, position). Row r of a micro batch belongs to
// sample sample_ids[r / length] at position first_positions[r / length] + r % length; x may hold only some rows, from
// first_row on. What changes from step to step is in the memory of the stream's device, so that recorded work draws
// anew each time it is replayed.
struct Dropout {
  double probability = 0.0;
  uint64_t seed = 0;
  uint32_t site = 0;
  const uint64_t* step = nullptr;
  Tensor sample_ids = {};       // (B) i64
  Tensor first_positions = {};  // (B) i32; absent: 0
  int64_t length = 0;
  int64_t first_row = 0;
};
// For operations that draw in `samples` samples.
void check(const Contract& contract, const Dropout& dropout, int64_t samples);

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
