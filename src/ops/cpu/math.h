#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "core/dtype.h"

namespace megalith::ops::cpu {

// The type that an operation on T computes in: see main_dtype().
template <class T>
using Main = std::conditional_t<std::is_same_v<T, double>, double, float>;

// static_cast<T>(value). A bfloat16 goes through its bits, without which GCC 12 does not vectorise the loop around it.
template <class T>
T round_to(Main<T> value) {
  if constexpr (std::is_same_v<T, bfloat16>) {
    bfloat16 result;
    result.bits = bfloat16(value).bits;
    return result;
  } else {
    return value;
  }
}

// e^x without branches, so that loops over it vectorise (libm's does not): Cody-Waite reduction to |r| <= ln 2 / 2,
// then the polynomial of Cephes' expf; relative error about 1e-7. Below -87.33 (the smallest normal result) it is 0,
// above 88.37 it is infinite; NaN stays NaN.
inline float fast_exp(float x) {
  constexpr float kLowest = -87.33F;
  constexpr float kHighest = 88.37F;
  constexpr float kLog2e = 1.44269504F;
  constexpr float kLn2High = 0.693359375F;
  constexpr float kLn2Low = -2.12194440e-4F;
  constexpr float kRounder = 12582912.0F;  // 1.5 * 2^23: adding it leaves the nearest integer in the low mantissa bits

  float clamped = x < kLowest ? kLowest : x;
  clamped = clamped > kHighest ? kHighest : clamped;
  const float shifted = clamped * kLog2e + kRounder;
  const float power = shifted - kRounder;
  const float r = (clamped - power * kLn2High) - power * kLn2Low;
  float p = 1.9875691500e-4F;
  p = p * r + 1.3981999507e-3F;
  p = p * r + 8.3334519073e-3F;
  p = p * r + 4.1665795894e-2F;
  p = p * r + 1.6666665459e-1F;
  p = p * r + 5.0000001201e-1F;
  const float mantissa = p * (r * r) + r + 1.0F;
  const uint32_t exponent = (std::bit_cast<uint32_t>(shifted) + 127U) << 23;  // the rounder's own bits leave at the top
  float result = mantissa * std::bit_cast<float>(exponent);
  result = x < kLowest ? 0.0F : result;
  return x > kHighest ? std::numeric_limits<float>::infinity() : result;
}
inline double fast_exp(double x) {
  return std::exp(x);
}

template <class M>
M sigmoid(M x) {
  return M(1) / (M(1) + fast_exp(-x));
}

}  // namespace megalith::ops::cpu
