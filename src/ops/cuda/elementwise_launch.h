#pragma once

#include "ops/cuda/matrix.h"

namespace megalith::ops::cuda {

void launch_fill(const Extent& extent, const Matrix& x, float value, void* stream);

// The extent is that of x, with the dtype of x.
void launch_cast(const Extent& extent, const Matrix& x, const Matrix& y, Element y_element, void* stream);

void launch_add(const Extent& extent, const Matrix& a, const Matrix& b, const Matrix& y, void* stream);

struct BiasGradientLaunch {
  Extent extent;
  Matrix dy;
  float* dbias = nullptr;
  float* partials = nullptr;  // max_partials rows
  int64_t max_partials = 0;
};
void launch_bias_gradient(const BiasGradientLaunch& args, void* stream);

struct NormalInitLaunch {
  Extent extent;
  Matrix x;
  uint64_t key = 0;
  double mean = 0.0;
  double std = 1.0;
  uint64_t first_element = 0;  // the global element at (0, 0)
  int64_t global_cols = 0;
};
void launch_normal_init(const NormalInitLaunch& args, void* stream);

}  // namespace megalith::ops::cuda
