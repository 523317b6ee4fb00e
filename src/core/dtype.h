#pragma once

#include <bit>
#include <cstdint>
#include <string_view>
#include <type_traits>

#include "core/error.h"

namespace megalith {

enum class DType : uint8_t { f32, bf16, f64, i16, i32, i64, e4m3, e5m2 };

// Rounds to nearest even; NaN stays NaN.
struct bfloat16 {
  uint16_t bits = 0;

  bfloat16() = default;
  explicit bfloat16(float value) {
    const auto word = std::bit_cast<uint32_t>(value);
    const bool is_nan = (word & 0x7fffffffu) > 0x7f800000u;
    bits = static_cast<uint16_t>(is_nan ? (word >> 16) | 0x40u : (word + 0x7fffu + ((word >> 16) & 1u)) >> 16);
  }
  explicit operator float() const { return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16); }
};

// 8 bits. Rounds to nearest even; whatever is beyond the largest finite number, infinity included, becomes it; NaN
// stays NaN.
template <int kExponentBits, int kMantissaBits, uint8_t kLargestBits, uint8_t kNanBits>
struct Float8 {
  static constexpr int kBias = (1 << (kExponentBits - 1)) - 1;
  static constexpr int kShift = 23 - kMantissaBits;  // fp32 has 23 bits of mantissa and a bias of 127
  static constexpr uint32_t kRebias = static_cast<uint32_t>(127 - kBias) << 23;

  uint8_t bits = 0;

  Float8() = default;
  explicit Float8(float value) {
    const auto word = std::bit_cast<uint32_t>(value);
    const uint32_t magnitude = word & 0x7fffffffu;
    constexpr uint32_t kSmallestNormal = kRebias + (1u << 23);
    uint32_t rounded = kLargestBits;
    if (magnitude > 0x7f800000u) {
      rounded = kNanBits;
    } else if (magnitude < kSmallestNormal) {
      // Where fp32 numbers are as far apart as the subnormals here, its own addition rounds.
      constexpr auto kOffset = static_cast<uint32_t>(127 + 23 + 1 - kBias - kMantissaBits) << 23;
      const float sum = std::bit_cast<float>(magnitude) + std::bit_cast<float>(kOffset);
      rounded = std::bit_cast<uint32_t>(sum) - kOffset;
    } else if (magnitude <= (static_cast<uint32_t>(kLargestBits) << kShift) + kRebias) {
      const uint32_t half_less_one = (1u << (kShift - 1)) - 1u;
      rounded = (magnitude - kRebias + half_less_one + ((magnitude >> kShift) & 1u)) >> kShift;
    }
    bits = static_cast<uint8_t>(rounded | ((word >> 24) & 0x80u));
  }
  explicit operator float() const {
    const uint32_t sign = (bits & 0x80u) << 24;
    const uint32_t magnitude = bits & 0x7fu;
    if (magnitude > kLargestBits) {
      const bool is_infinite = magnitude == kLargestBits + 1u && kLargestBits + 1u < kNanBits;
      return std::bit_cast<float>(sign | (is_infinite ? 0x7f800000u : 0x7fc00000u));
    }
    if (magnitude >= (1u << kMantissaBits)) return std::bit_cast<float>(sign | ((magnitude << kShift) + kRebias));
    constexpr auto kSmallest = static_cast<uint32_t>(127 + 1 - kBias - kMantissaBits) << 23;
    const float value = static_cast<float>(magnitude) * std::bit_cast<float>(kSmallest);
    return sign != 0 ? -value : value;
  }
};
using float8_e4m3 = Float8<4, 3, 0x7e, 0x7f>;  // up to 448; no infinity
using float8_e5m2 = Float8<5, 2, 0x7b, 0x7e>;  // up to 57344

// An fp32 number as the bf16 nearest to it (halves away from zero) and the 16 bits that bf16 leaves out.
struct SplitFloat {
  bfloat16 high;
  int16_t low = 0;
};
inline SplitFloat split_float(float value) {
  const auto word = std::bit_cast<uint32_t>(value);
  SplitFloat parts;
  parts.high.bits = static_cast<uint16_t>((word + 0x8000u) >> 16);
  parts.low = static_cast<int16_t>(word & 0xffffu);
  return parts;
}
inline float join_float(bfloat16 high, int16_t low) {
  return std::bit_cast<float>((static_cast<uint32_t>(high.bits) << 16) + static_cast<uint32_t>(int32_t{low}));
}

constexpr double widen(double value) {
  return value;
}
inline double widen(bfloat16 value) {
  return static_cast<float>(value);
}

constexpr bool is_fp8(DType dtype) {
  return dtype == DType::e4m3 || dtype == DType::e5m2;
}

constexpr int64_t size_of(DType dtype) {
  switch (dtype) {
    case DType::e4m3:
    case DType::e5m2:
      return 1;
    case DType::bf16:
    case DType::i16:
      return 2;
    case DType::f32:
    case DType::i32:
      return 4;
    case DType::f64:
    case DType::i64:
      return 8;
  }
  return 0;
}

constexpr std::string_view name_of(DType dtype) {
  switch (dtype) {
    case DType::bf16:
      return "bf16";
    case DType::f32:
      return "f32";
    case DType::f64:
      return "f64";
    case DType::i16:
      return "i16";
    case DType::i32:
      return "i32";
    case DType::i64:
      return "i64";
    case DType::e4m3:
      return "e4m3";
    case DType::e5m2:
      return "e5m2";
  }
  return "?";
}

template <class T>
constexpr DType dtype_of() {
  if constexpr (std::is_same_v<T, float>) return DType::f32;
  if constexpr (std::is_same_v<T, bfloat16>) return DType::bf16;
  if constexpr (std::is_same_v<T, double>) return DType::f64;
  if constexpr (std::is_same_v<T, int16_t>) return DType::i16;
  if constexpr (std::is_same_v<T, int32_t>) return DType::i32;
  if constexpr (std::is_same_v<T, int64_t>) return DType::i64;
  if constexpr (std::is_same_v<T, float8_e4m3>) return DType::e4m3;
  if constexpr (std::is_same_v<T, float8_e5m2>) return DType::e5m2;
}

// Gradients, master weights and moments of a model that computes in `compute`: fp32, or fp64 where fp64 is computed in.
constexpr DType main_dtype(DType compute) {
  return compute == DType::f64 ? DType::f64 : DType::f32;
}

// Calls `body` with std::type_identity<T> for the floating-point type that `dtype` names.
template <class Body>
decltype(auto) dispatch_float(DType dtype, Body&& body) {
  switch (dtype) {
    case DType::f32:
      return body(std::type_identity<float>{});
    case DType::bf16:
      return body(std::type_identity<bfloat16>{});
    case DType::f64:
      return body(std::type_identity<double>{});
    default:
      fail(ErrorKind::internal, "internal error: {} is not a floating-point type", name_of(dtype));
  }
}

// The same for fp8 types.
template <class Body>
decltype(auto) dispatch_fp8(DType dtype, Body&& body) {
  switch (dtype) {
    case DType::e4m3:
      return body(std::type_identity<float8_e4m3>{});
    case DType::e5m2:
      return body(std::type_identity<float8_e5m2>{});
    default:
      fail(ErrorKind::internal, "internal error: {} is not an fp8 type", name_of(dtype));
  }
}

}  // namespace megalith
