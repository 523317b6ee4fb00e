#pragma once

#include "ops/cuda/matrix.h"
#include "ops/operands/operand.h"

// Tensors, as launchers take them.

namespace megalith::ops::cuda {

inline Element element_of(DType dtype) {
  if (dtype == DType::f64) user_error("the GPU computes in bf16 or fp32, not in fp64; use trainer.accelerator=cpu");
  MEGALITH_CHECK(dtype == DType::f32 || dtype == DType::bf16, "{} is not a floating-point type", name_of(dtype));
  return dtype == DType::bf16 ? Element::bf16 : Element::f32;
}

inline Matrix matrix_of(const Tensor& tensor) {
  return {tensor.data, tensor.row_stride};
}

inline Fp8 format_of(DType dtype) {
  return dtype == DType::e5m2 ? Fp8::e5m2 : Fp8::e4m3;
}

inline Fp8Operand fp8_of(const Operand& operand) {
  return {.format = format_of(operand.rows ? operand.rows.dtype : operand.columns.dtype),
          .rows = matrix_of(operand.rows),
          .columns = matrix_of(operand.columns),
          .scale = operand.slot.scale,
          .amax = operand.slot.amax};
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

// The values of given positions are not looked at: the data room has refused those beyond the limit.
inline RowPositions positions_of(const Tensor& given, int64_t offset, int64_t length) {
  if (given) return {.given = given.as<int32_t>()};
  return {.given = nullptr, .offset = offset, .length = length};
}

}  // namespace megalith::ops::cuda
