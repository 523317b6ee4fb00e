#pragma once

#include "ops/check.h"

// Checks of tensors in the memory of the CPU.

namespace megalith::ops::cpu {

inline void check_matrix(const Tensor& tensor, const char* name, DType dtype, int64_t rows, int64_t cols) {
  ops::check_matrix(Device::cpu, tensor, name, dtype, rows, cols);
}
inline void check_vector(const Tensor& tensor, const char* name, DType dtype, int64_t elements) {
  ops::check_vector(Device::cpu, tensor, name, dtype, elements);
}
inline void check_scratch(const Tensor& tensor, DType dtype, int64_t elements) {
  ops::check_scratch(Device::cpu, tensor, dtype, elements);
}

}  // namespace megalith::ops::cpu
