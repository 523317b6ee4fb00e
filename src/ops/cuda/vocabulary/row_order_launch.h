#pragma once

#include "ops/cuda/matrix.h"

namespace megalith::ops::cuda {

// Rows [0, count) by their keys, rows of equal keys ascending. A key outside [0, limit) becomes `limit`, which comes
// last.
struct RowOrderLaunch {
  const int32_t* given = nullptr;
  int64_t limit = 0;
  int64_t count = 0;
  int32_t* keys = nullptr;
  int32_t* rows = nullptr;
  int32_t* scratch = nullptr;
  int64_t scratch_elements = 0;
};
// False where the scratch is too small.
bool launch_row_order(const RowOrderLaunch& args, void* stream);

}  // namespace megalith::ops::cuda
