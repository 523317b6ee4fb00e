#pragma once

#include <bit>
#include <cstdint>
#include <string_view>
#include <type_traits>

#include "core/error.h"

namespace megalith {

enum class DType : uint8_t { f32, bf16, f64, i16, i32, i64 };

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

constexpr int64_t size_of(DType dtype) {
  switch (dtype) {
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

}  // namespace megalith
