#pragma once

#include "ops/cpu/check.h"

namespace megalith::ops::cpu {

// Where each row of a micro batch stands in its sample: counted along the sample, or given per row.
class Positions {
 public:
  // Every position must lie below `limit`.
  Positions(const Tensor& given, int64_t offset, int64_t length, int64_t rows, int64_t limit)
      : given_(given ? given.as<int32_t>() : nullptr), offset_(offset), length_(length) {
    if (!given) {
      MEGALITH_CHECK(length > 0 && offset >= 0 && offset + std::min(length, rows) <= limit,
                     "positions [{}, {} + {}) of {}", offset, offset, length, limit);
      return;
    }
    check_vector(given, "positions", DType::i32, rows);
    for (int64_t row = 0; row < rows; ++row) {
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
