#pragma once

#include "ops/cuda/matrix.h"

namespace megalith::ops::cuda {

// x, y (rows, cols) of the extent. Here as below: results as they are computed, or cast to fp8.
void launch_gelu_forward(const Extent& extent, const Matrix& x, const Matrix& y, void* stream);
void launch_gelu_forward(const Extent& extent, const Matrix& x, const Fp8Operand& y, void* stream);

struct GeluBackwardLaunch {
  Extent extent;
  Matrix dy;
  Matrix x;
  Matrix dx;  // unless it goes to fp8
  float* dbias = nullptr;
  float* partials = nullptr;  // max_partials rows, with dbias
  int64_t max_partials = 0;
};
void launch_gelu_backward(const GeluBackwardLaunch& args, void* stream);
void launch_gelu_backward(const GeluBackwardLaunch& args, const Fp8Operand& dx, void* stream);

// The extent is that of y or dy.
void launch_swiglu_forward(const Extent& extent, const Matrix& gate_up, const Matrix& y, void* stream);
void launch_swiglu_forward(const Extent& extent, const Matrix& gate_up, const Fp8Operand& y, void* stream);
void launch_swiglu_backward(const Extent& extent, const Matrix& dy, const Matrix& gate_up, const Matrix& dgate_up,
                            void* stream);
void launch_swiglu_backward(const Extent& extent, const Matrix& dy, const Matrix& gate_up, const Fp8Operand& dgate_up,
                            void* stream);

}  // namespace megalith::ops::cuda
