#pragma once

#include "core/tensor.h"

// The shape and type checks with which every operation begins, for the memory of either device.

namespace megalith::ops {

inline void check_device(Device device, const Tensor& tensor, const char* name) {
  MEGALITH_CHECK(tensor.device == device, "'{}' is not in the memory of the {}", name,
                 device == Device::cpu ? "CPU" : "GPU");
}

inline void check_matrix(Device device, const Tensor& tensor, const char* name, DType dtype, int64_t rows,
                         int64_t cols) {
  check_device(device, tensor, name);
  MEGALITH_CHECK(tensor.dtype == dtype, "'{}' holds {}, not {}", name, name_of(tensor.dtype), name_of(dtype));
  MEGALITH_CHECK(tensor.rows() == rows && tensor.cols() == cols, "'{}' is {}, not ({}, {})", name,
                 to_string(tensor.shape), rows, cols);
}

// The elements of a vector are contiguous, whatever its rank.
inline void check_vector(Device device, const Tensor& tensor, const char* name, DType dtype, int64_t elements) {
  check_device(device, tensor, name);
  MEGALITH_CHECK(tensor.dtype == dtype, "'{}' holds {}, not {}", name, name_of(tensor.dtype), name_of(dtype));
  MEGALITH_CHECK(tensor.elements() == elements && tensor.contiguous(), "'{}' is {}, not {} contiguous elements", name,
                 to_string(tensor.shape), elements);
}

inline void check_scratch(Device device, const Tensor& tensor, DType dtype, int64_t elements) {
  MEGALITH_CHECK(
      tensor.device == device && tensor.dtype == dtype && tensor.contiguous() && tensor.elements() >= elements,
      "scratch is {} {}, {} {} are needed", to_string(tensor.shape), name_of(tensor.dtype), elements, name_of(dtype));
}

}  // namespace megalith::ops
