#pragma once

#include "ops/cuda/matrix.h"

namespace megalith::ops::cuda {

// LayerNorm where `mean` is given, else RMSNorm.
struct NormForwardLaunch {
  Extent extent;
  Matrix x;
  const void* weight = nullptr;
  const void* bias = nullptr;
  float* mean = nullptr;
  float* rstd = nullptr;
  float epsilon = 0.0f;
};
void launch_norm_forward(const NormForwardLaunch& args, const Matrix& y, void* stream);
void launch_norm_forward(const NormForwardLaunch& args, const Fp8Operand& y, void* stream);

struct NormBackwardLaunch {
  Extent extent;
  Matrix dy;
  Matrix x;
  Matrix residual;
  Matrix dx;
  const void* weight = nullptr;
  const float* mean = nullptr;
  const float* rstd = nullptr;
  float* dweight = nullptr;
  float* dbias = nullptr;
  float* dx_sums = nullptr;
  float* partials = nullptr;  // 3 * max_partials rows
  int64_t max_partials = 0;
};
void launch_norm_backward(const NormBackwardLaunch& args, void* stream);

}  // namespace megalith::ops::cuda
