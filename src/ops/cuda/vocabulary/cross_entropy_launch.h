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

// Of a part of the columns, from first_column on.
struct CrossEntropyPartLaunch {
  Extent extent;
  Matrix logits;
  const int32_t* targets = nullptr;
  Matrix statistics;  // f32
  int64_t vocabulary = 0;
  int64_t first_column = 0;
};
void launch_cross_entropy_part(const CrossEntropyPartLaunch& args, void* stream);

struct CrossEntropyOfPartsLaunch {
  Extent extent;
  Matrix logits;
  const int32_t* targets = nullptr;
  const float* weights = nullptr;
  float* losses = nullptr;
  Matrix statistics;  // f32
  int64_t ranks = 0;
  int64_t vocabulary = 0;
  int64_t first_column = 0;
  bool with_gradient = true;
  const double* gradient_scale = nullptr;
};
void launch_cross_entropy_of_parts(const CrossEntropyOfPartsLaunch& args, void* stream);

}  // namespace megalith::ops::cuda
