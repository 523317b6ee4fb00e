#pragma once

#include "ops/cuda/matrix.h"

namespace megalith::ops::cuda {

struct CrossEntropyLaunch {
  Extent extent;  // of logits, padding included
  Matrix logits;
  const int32_t* targets = nullptr;
  const float* weights = nullptr;
  float* losses = nullptr;
  int64_t vocabulary = 0;
  bool with_gradient = true;
  const double* gradient_scale = nullptr;
};
void launch_cross_entropy(const CrossEntropyLaunch& args, void* stream);

}  // namespace megalith::ops::cuda
