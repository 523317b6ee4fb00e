#pragma once

#include "core/tensor.h"

namespace megalith::ops::cpu {

// Where each row of a micro batch stands in its sample: counted along the sample, or given per row.
class Positions {
 public:
  // Every given position must be below `limit`.
  Positions(const Tensor& given, int64_t offset, int64_t length, int64_t rows, int64_t limit)
      : given_(given ? given.as<int32_t>() : nullptr), offset_(offset), length_(length) {
    for (int64_t row = 0; given && row < rows; ++row) {
      MEGALITH_CHECK(0 <= given_[row] && given_[row] < limit, "position {} in row {} of {}", given_[row], row, limit);
    }
  }

  int64_t of(int64_t row) const { return given_ == nullptr ? offset_ + row % length_ : given_[row]; }

 private:
  const int32_t* given_;
  int64_t offset_;
  int64_t length_;
};

}  // namespace megalith::ops::cpu
