#pragma once

#include <algorithm>

#include "ops/check.h"
#include "ops/cuda/matrix.h"

// Checks of tensors in the memory of a GPU, and their translation into what launchers take.

namespace megalith::ops::cuda {

inline void check_matrix(const Tensor& tensor, const char* name, DType dtype, int64_t rows, int64_t cols) {
  ops::check_matrix(Device::cuda, tensor, name, dtype, rows, cols);
}
inline void check_vector(const Tensor& tensor, const char* name, DType dtype, int64_t elements) {
  ops::check_vector(Device::cuda, tensor, name, dtype, elements);
}
inline void check_scratch(const Tensor& tensor, DType dtype, int64_t elements) {
  ops::check_scratch(Device::cuda, tensor, dtype, elements);
}

inline Element element_of(DType dtype) {
  if (dtype == DType::f64) user_error("the GPU computes in bf16 or fp32, not in fp64; use trainer.accelerator=cpu");
  MEGALITH_CHECK(dtype == DType::f32 || dtype == DType::bf16, "{} is not a floating-point type", name_of(dtype));
  return dtype == DType::bf16 ? Element::bf16 : Element::f32;
}

inline Matrix matrix_of(const Tensor& tensor) {
  return {tensor.data, tensor.row_stride};
}

inline Extent extent_of(const Tensor& tensor) {
  return {tensor.rows(), tensor.cols(), element_of(tensor.dtype)};
}

// All of them one behind the other in memory: one long row. Absent tensors are contiguous.
template <class... Tensors>
Extent flat_extent(const Tensor& first, const Tensors&... others) {
  Extent extent = extent_of(first);
  if (first.contiguous() && (others.contiguous() && ...)) {
    extent.cols *= extent.rows;
    extent.rows = extent.cols == 0 ? 0 : 1;
  }
  return extent;
}

template <class T>
T* data_or_null(const Tensor& tensor) {
  return tensor ? tensor.as<T>() : nullptr;
}

// The values of given positions are not looked at: the data room has refused those beyond `limit`.
inline RowPositions positions_of(const Tensor& given, int64_t offset, int64_t length, int64_t rows, int64_t limit) {
  if (given) {
    check_vector(given, "positions", DType::i32, rows);
    return {.given = given.as<int32_t>()};
  }
  MEGALITH_CHECK(length > 0 && offset >= 0 && offset + std::min(length, rows) <= limit, "positions [{}, {} + {}) of {}",
                 offset, offset, length, limit);
  return {.given = nullptr, .offset = offset, .length = length};
}

}  // namespace megalith::ops::cuda
