#pragma once

#include "ops/cuda/matrix.h"

namespace megalith::ops::cuda {

// A micro batch has fewer than 2^32 rows.
__device__ inline int64_t position_of(const RowPositions& positions, int64_t row) {
  if (positions.given != nullptr) return __ldg(positions.given + row);
  return positions.offset + static_cast<uint32_t>(row) % static_cast<uint32_t>(positions.length);
}

}  // namespace megalith::ops::cuda
