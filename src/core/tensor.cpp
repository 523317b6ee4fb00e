#include "core/tensor.h"

namespace megalith {

Shape::Shape(std::initializer_list<int64_t> dims) : rank_(static_cast<int>(dims.size())) {
  MEGALITH_CHECK(rank_ <= kMaxRank, "shape of rank {} is not supported", rank_);
  int i = 0;
  for (const int64_t dim : dims) {
    MEGALITH_CHECK(dim >= 0, "negative dimension {}", dim);
    dims_[static_cast<size_t>(i++)] = dim;
  }
}

int64_t Shape::elements() const {
  int64_t count = rank_ == 0 ? 0 : 1;
  for (int i = 0; i < rank_; ++i) count *= (*this)[i];
  return count;
}

std::string to_string(const Shape& shape) {
  std::string text = "(";
  for (int i = 0; i < shape.rank(); ++i) text += fmt::format("{}{}", i == 0 ? "" : ", ", shape[i]);
  return text + ")";
}

Tensor::Tensor(void* memory, DType type, Shape dims, Device where)
    : data(memory), dtype(type), device(where), shape(dims), row_stride(cols()) {}

Tensor Tensor::slice_rows(int64_t begin, int64_t end) const {
  MEGALITH_CHECK(0 <= begin && begin <= end && end <= rows(), "rows [{}, {}) of {}", begin, end, rows());
  Tensor slice = *this;
  slice.data = static_cast<std::byte*>(data) + begin * row_stride * size_of(dtype);
  slice.shape = Shape{end - begin, cols()};
  return slice;
}

Tensor Tensor::slice_cols(int64_t begin, int64_t end) const {
  MEGALITH_CHECK(0 <= begin && begin <= end && end <= cols(), "columns [{}, {}) of {}", begin, end, cols());
  Tensor slice = *this;
  slice.data = static_cast<std::byte*>(data) + begin * size_of(dtype);
  slice.shape = Shape{rows(), end - begin};
  return slice;
}

Tensor Tensor::view(Shape dims) const {
  MEGALITH_CHECK(contiguous() && dims.elements() == elements(), "cannot view {} as {}", to_string(shape),
                 to_string(dims));
  return Tensor(data, dtype, dims, device);
}

int64_t div_exact(int64_t dividend, int64_t divisor) {
  MEGALITH_CHECK(divisor > 0 && dividend % divisor == 0, "{} is not a multiple of {}", dividend, divisor);
  return dividend / divisor;
}

}  // namespace megalith
