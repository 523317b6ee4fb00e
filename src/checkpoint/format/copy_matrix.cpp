#include "checkpoint/format/copy_matrix.h"

#include <algorithm>
#include <bit>
#include <type_traits>

#include "core/error.h"

namespace megalith::checkpoint {

namespace {

// So many rows and columns of both matrices stay in the first cache.
constexpr int64_t kTile = 32;

template <class To, class From>
To rounded(From value) {
  if constexpr (std::is_same_v<To, From>) {
    return value;
  } else {
    return To(static_cast<float>(value));
  }
}

template <class From, class To>
void copy_elements(const From* from, To* to, int64_t count) {
  for (int64_t i = 0; i < count; ++i) to[i] = rounded<To>(from[i]);
}

template <class From, class To>
void copy_transposed(const From* from, To* to, int64_t rows, int64_t cols) {
  for (int64_t row0 = 0; row0 < rows; row0 += kTile) {
    for (int64_t col0 = 0; col0 < cols; col0 += kTile) {
      for (int64_t row = row0; row < std::min(rows, row0 + kTile); ++row) {
        for (int64_t col = col0; col < std::min(cols, col0 + kTile); ++col) {
          to[col * rows + row] = rounded<To>(from[row * cols + col]);
        }
      }
    }
  }
}

float widen_half(uint16_t bits) {
  const uint32_t sign = static_cast<uint32_t>(bits & 0x8000u) << 16;
  const uint32_t exponent = bits >> 10 & 0x1fu;
  const uint32_t fraction = bits & 0x3ffu;
  if (exponent == 0x1f) return std::bit_cast<float>(sign | 0x7f800000u | fraction << 13);
  if (exponent != 0) return std::bit_cast<float>(sign | (exponent + 112) << 23 | fraction << 13);
  const float subnormal = static_cast<float>(fraction) * 0x1p-24F;
  return sign != 0 ? -subnormal : subnormal;
}

}  // namespace

void copy_matrix(const Tensor& from, const Tensor& to, bool transposed) {
  MEGALITH_CHECK(from.elements() == to.elements() && from.contiguous() && to.contiguous(), "{} does not go into {}",
                 to_string(from.shape), to_string(to.shape));
  MEGALITH_CHECK(!transposed || (from.rows() == to.cols() && from.cols() == to.rows()), "{} is not {} transposed",
                 to_string(to.shape), to_string(from.shape));
  dispatch_float(from.dtype, [&]<class From>(std::type_identity<From>) {
    dispatch_float(to.dtype, [&]<class To>(std::type_identity<To>) {
      if (transposed) {
        copy_transposed(from.as<From>(), to.as<To>(), from.rows(), from.cols());
      } else {
        copy_elements(from.as<From>(), to.as<To>(), from.elements());
      }
    });
  });
}

void widen_halves(std::span<const uint16_t> halves, std::span<float> into) {
  MEGALITH_CHECK(halves.size() == into.size(), "{} halves, {} floats", halves.size(), into.size());
  std::transform(halves.begin(), halves.end(), into.begin(), widen_half);
}

}  // namespace megalith::checkpoint
