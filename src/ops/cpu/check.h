#pragma once

#include "core/tensor.h"

// The shape and type checks with which every operation begins.

namespace megalith::ops::cpu {

inline void check_matrix(const Tensor& tensor, const char* name, DType dtype, int64_t rows, int64_t cols) {
  MEGALITH_CHECK(tensor.device == Device::cpu, "'{}' is not in the memory of the CPU", name);
  MEGALITH_CHECK(tensor.dtype == dtype, "'{}' holds {}, not {}", name, name_of(tensor.dtype), name_of(dtype));
  MEGALITH_CHECK(tensor.rows() == rows && tensor.cols() == cols, "'{}' is {}, not ({}, {})", name,
                 to_string(tensor.shape), rows, cols);
}

// The elements of a vector are contiguous, whatever its rank.
inline void check_vector(const Tensor& tensor, const char* name, DType dtype, int64_t elements) {
  MEGALITH_CHECK(tensor.device == Device::cpu, "'{}' is not in the memory of the CPU", name);
  MEGALITH_CHECK(tensor.dtype == dtype, "'{}' holds {}, not {}", name, name_of(tensor.dtype), name_of(dtype));
  MEGALITH_CHECK(tensor.elements() == elements && tensor.contiguous(), "'{}' is {}, not {} contiguous elements", name,
                 to_string(tensor.shape), elements);
}

inline void check_scratch(const Tensor& tensor, DType dtype, int64_t elements) {
  MEGALITH_CHECK(
      tensor.device == Device::cpu && tensor.dtype == dtype && tensor.contiguous() && tensor.elements() >= elements,
      "scratch is {} {}, {} {} are needed", to_string(tensor.shape), name_of(tensor.dtype), elements, name_of(dtype));
}

}  // namespace megalith::ops::cpu
