#include "ops/contract.h"

#include <algorithm>

namespace megalith::ops {

void Contract::refuse(const std::string& why) const {
  fail(ErrorKind::internal, "internal error: {}: {}", operation_, why);
}

void Contract::placed(const Tensor& tensor, const char* name) const {
  require(tensor.device == device_, "'{}' is not in the memory of the {}", name,
          device_ == Device::cpu ? "CPU" : "GPU");
}

void Contract::typed(const Tensor& tensor, const char* name, DType dtype) const {
  require(tensor.dtype == dtype, "'{}' holds {}, not {}", name, name_of(tensor.dtype), name_of(dtype));
}

void Contract::floats(const Tensor& tensor, const char* name) const {
  placed(tensor, name);
  const bool is_float = tensor.dtype == DType::f32 || tensor.dtype == DType::bf16 || tensor.dtype == DType::f64;
  require(is_float, "'{}' holds {}, which is not a floating-point type", name, name_of(tensor.dtype));
}

void Contract::matrix(const Tensor& tensor, const char* name, DType dtype, int64_t rows, int64_t cols) const {
  placed(tensor, name);
  typed(tensor, name, dtype);
  if (tensor.rows() == rows && tensor.cols() == cols) [[likely]]
    return;
  refuse(fmt::format("'{}' is {}, not ({}, {})", name, to_string(tensor.shape), rows, cols));
}

void Contract::operand(const Operand& operand, const char* name, DType dtype, int64_t rows, int64_t cols) const {
  if (!operand.slot) {
    require(!operand.columns, "'{}' has columns, which no GEMM of {} reads", name, name_of(dtype));
    return matrix(operand.rows, name, dtype, rows, cols);
  }
  const DType stored = operand.rows ? operand.rows.dtype : operand.columns.dtype;
  require(!operand || is_fp8(stored), "'{}' has a slot and holds {}", name, name_of(stored));
  require(dtype != DType::f64, "'{}' is cast from {} to fp8", name, name_of(dtype));
  if (operand.rows) matrix(operand.rows, name, stored, rows, cols);
  if (operand.columns) matrix(operand.columns, name, stored, cols, rows);
}

void Contract::vector(const Tensor& tensor, const char* name, DType dtype, int64_t elements) const {
  placed(tensor, name);
  typed(tensor, name, dtype);
  if (tensor.elements() == elements && tensor.contiguous()) [[likely]]
    return;
  refuse(fmt::format("'{}' is {}, not {} contiguous elements", name, to_string(tensor.shape), elements));
}

void Contract::scratch(const Tensor& tensor, DType dtype, int64_t elements) const {
  if (elements == 0) return;
  placed(tensor, "scratch");
  typed(tensor, "scratch", dtype);
  if (tensor.elements() >= elements && tensor.contiguous()) [[likely]]
    return;
  refuse(fmt::format("scratch is {}, not {} contiguous elements or more", to_string(tensor.shape), elements));
}

void Contract::positions(const Tensor& given, int64_t offset, int64_t length, int64_t rows, int64_t limit) const {
  if (given) return vector(given, "positions", DType::i32, rows);
  require(length > 0 && offset >= 0 && offset + std::min(length, rows) <= limit, "positions [{}, {} + {}) of {}",
          offset, offset, length, limit);
}

}  // namespace megalith::ops
