#pragma once

#include "ops/cuda/matrix.h"

namespace megalith::ops::cuda {

struct RopeLaunch {
  Extent extent;
  Matrix x;
  int64_t head_dim = 0;
  RowPositions positions = {};
  Matrix cosines;  // f32
  Matrix sines;
  bool inverse = false;
};
void launch_rope(const RopeLaunch& args, void* stream);

}  // namespace megalith::ops::cuda
