#pragma once

#include <utility>

#include "ops/operands/operand.h"

namespace megalith::ops {

// What check() of an operation's arguments asks for. It looks at tensors and never at what they hold, and makes no text
// unless something is wrong: that is an internal error which names the operation.
class Contract {
 public:
  // `threads`: those of the stream's pool.
  Contract(const char* operation, Device device, int threads)
      : operation_(operation), device_(device), threads_(threads) {}

  Device device() const { return device_; }
  int threads() const { return threads_; }

  // Every tensor must be in the memory of the device. One of any floating-point type and shape:
  void floats(const Tensor& tensor, const char* name) const;
  void matrix(const Tensor& tensor, const char* name, DType dtype, int64_t rows, int64_t cols) const;
  void like(const Tensor& tensor, const char* name, const Tensor& other) const {
    matrix(tensor, name, other.dtype, other.rows(), other.cols());
  }
  // An operand (rows, cols) of values that were computed in `dtype`: stored so, or in fp8 where it has a slot.
  void operand(const Operand& operand, const char* name, DType dtype, int64_t rows, int64_t cols) const;
  void operand(const Operand& other, const char* name, const Tensor& like) const {
    operand(other, name, like.dtype, like.rows(), like.cols());
  }
  // The elements of a vector are contiguous, whatever its rank.
  void vector(const Tensor& tensor, const char* name, DType dtype, int64_t elements) const;
  // At least so many contiguous elements; where none are needed, the tensor may be absent.
  void scratch(const Tensor& tensor, DType dtype, int64_t elements) const;
  // Positions of rows in their samples: given (rows) i32, or counted from `offset` on along samples of `length`, where
  // each must be below `limit`.
  void positions(const Tensor& given, int64_t offset, int64_t length, int64_t rows, int64_t limit) const;

  template <class... Args>
  void require(bool condition, fmt::format_string<Args...> format, Args&&... args) const {
    if (!condition) [[unlikely]]
      refuse(fmt::format(format, std::forward<Args>(args)...));
  }

 private:
  void placed(const Tensor& tensor, const char* name) const;
  void typed(const Tensor& tensor, const char* name, DType dtype) const;
  [[noreturn]] void refuse(const std::string& why) const;

  const char* operation_;
  Device device_;
  int threads_;
};

}  // namespace megalith::ops
