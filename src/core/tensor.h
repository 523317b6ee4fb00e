#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>

#include "core/dtype.h"

namespace megalith {

enum class Device : uint8_t { cpu, cuda };

class Shape {
 public:
  static constexpr int kMaxRank = 4;

  Shape() = default;
  Shape(std::initializer_list<int64_t> dims);

  int rank() const { return rank_; }
  int64_t operator[](int dim) const { return dims_[static_cast<size_t>(dim)]; }
  int64_t elements() const;
  bool operator==(const Shape&) const = default;

 private:
  std::array<int64_t, kMaxRank> dims_{};
  int rank_ = 0;
};

std::string to_string(const Shape& shape);

// A view: it owns nothing and is passed by value. Seen as a matrix of rows() x cols(), where the last dimension is the
// column; the elements of a row are contiguous, rows are `row_stride` elements apart.
struct Tensor {
  void* data = nullptr;
  DType dtype = DType::f32;
  Device device = Device::cpu;
  Shape shape;
  int64_t row_stride = 0;

  Tensor() = default;
  Tensor(void* memory, DType type, Shape dims, Device where = Device::cpu);

  explicit operator bool() const { return shape.rank() > 0; }
  int64_t elements() const { return shape.elements(); }
  int64_t bytes() const { return elements() * size_of(dtype); }
  int64_t cols() const { return shape.rank() == 0 ? 0 : shape[shape.rank() - 1]; }
  int64_t rows() const { return cols() == 0 ? 0 : elements() / cols(); }
  bool contiguous() const { return rows() <= 1 || row_stride == cols(); }

  template <class T>
  T* as() const {
    MEGALITH_CHECK(dtype == dtype_of<T>(), "tensor holds {}, not {}", name_of(dtype), name_of(dtype_of<T>()));
    return static_cast<T*>(data);
  }
  template <class T>
  T* row(int64_t index) const {
    return as<T>() + index * row_stride;
  }

  Tensor slice_rows(int64_t begin, int64_t end) const;
  Tensor slice_cols(int64_t begin, int64_t end) const;
  // The same contiguous elements under another shape.
  Tensor view(Shape dims) const;
};

int64_t div_exact(int64_t dividend, int64_t divisor);
constexpr int64_t ceil_div(int64_t dividend, int64_t divisor) {
  return (dividend + divisor - 1) / divisor;
}
constexpr int64_t round_up(int64_t value, int64_t multiple) {
  return ceil_div(value, multiple) * multiple;
}

}  // namespace megalith
