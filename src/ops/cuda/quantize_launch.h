#pragma once

#include "ops/cuda/matrix.h"

namespace megalith::ops::cuda {

struct QuantizeLaunch {
  Extent extent;
  Matrix x;
  Fp8Operand y;
  float* dbias = nullptr;
  float* partials = nullptr;  // with dbias: a row per kColumnTile rows
};
void launch_quantize(const QuantizeLaunch& args, void* stream);

// Bytes: from (rows, cols) to (cols, rows).
void launch_transpose(int64_t rows, int64_t cols, const Matrix& from, const Matrix& to, void* stream);

}  // namespace megalith::ops::cuda
