#pragma once

#include <cstdint>
#include <span>

#include "core/tensor.h"

namespace megalith::checkpoint {

// Writes (R,C) `from` to `to`, which is (R,C), or (C,R) where `transposed`. Both contiguous floating-point in CPU
// memory; of one type they hold the same bits afterwards, a narrower one is rounded to.
void copy_matrix(const Tensor& from, const Tensor& to, bool transposed);

// IEEE half precision as fp32, which holds every one of its numbers.
void widen_halves(std::span<const uint16_t> halves, std::span<float> into);

}  // namespace megalith::checkpoint
