#pragma once

#include "ops/cuda/matrix.h"

namespace megalith::ops::cuda {

// What a kernel needs to draw: kept are the values whose 32 bits are at or above the threshold.
struct DropoutDraw {
  uint64_t site_key = 0;  // mix_key(seed, site)
  uint32_t threshold = 0;
  float scale = 1.0f;  // 1 / (1 - p)
  const uint64_t* step = nullptr;
  const int64_t* sample_ids = nullptr;
  const int32_t* first_positions = nullptr;  // null: 0
  int64_t length = 1;
  int64_t first_row = 0;
};

struct DropoutAddLaunch {
  Extent extent;
  Matrix x;
  Matrix residual;
  Matrix y;
  DropoutDraw draw;
};
void launch_dropout_add(const DropoutAddLaunch& args, void* stream);

}  // namespace megalith::ops::cuda
