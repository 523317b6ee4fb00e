#include "core/dtype.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "core/rng.h"

namespace megalith {
namespace {

TEST(SplitFloat, IsExactForEveryFiniteNumber) {
  for (uint32_t i = 0; i < 200000; ++i) {
    const auto value = std::bit_cast<float>(philox(1, {i, 0, 0, 0})[0]);
    if (!std::isfinite(value)) continue;
    const SplitFloat parts = split_float(value);
    ASSERT_EQ(std::bit_cast<uint32_t>(join_float(parts.high, parts.low)), std::bit_cast<uint32_t>(value)) << value;
  }
}

TEST(SplitFloat, HighIsTheNearestBf16) {
  for (uint32_t i = 0; i < 200000; ++i) {
    const auto value = static_cast<float>(normal_at(2, i));
    const float high = static_cast<float>(split_float(value).high);
    const float nearest = static_cast<float>(bfloat16(value));
    ASSERT_EQ(std::fabs(high - value), std::fabs(nearest - value)) << value;
  }
}

// The finite numbers of an fp8 type from 0 on, by their codes.
template <class F>
std::vector<float> values_of() {
  std::vector<float> values;
  F code;
  for (int bits = 0; bits < 128; ++bits) {
    code.bits = static_cast<uint8_t>(bits);
    const auto value = static_cast<float>(code);
    if (std::isfinite(value)) values.push_back(value);
  }
  return values;
}

// By definition: the nearest number, of two that are equally near the one with an even code.
uint8_t nearest_code(const std::vector<float>& values, float x) {
  const double magnitude = std::min(std::fabs(static_cast<double>(x)), static_cast<double>(values.back()));
  const auto above = std::lower_bound(values.begin(), values.end(), magnitude);
  auto code = static_cast<size_t>(above - values.begin());
  if (code > 0 && *above != magnitude) {
    const double up = *above - magnitude;
    const double down = magnitude - values[code - 1];
    if (down < up || (down == up && (code - 1) % 2 == 0)) --code;
  }
  return static_cast<uint8_t>(code | (std::signbit(x) ? 0x80u : 0u));
}

template <class F>
class Float8Test : public ::testing::Test {};
using Float8Types = ::testing::Types<float8_e4m3, float8_e5m2>;
TYPED_TEST_SUITE(Float8Test, Float8Types);

TYPED_TEST(Float8Test, NumbersAreThoseOfTheFormat) {
  const std::vector<float> values = values_of<TypeParam>();
  const bool is_e4m3 = std::is_same_v<TypeParam, float8_e4m3>;
  EXPECT_EQ(values.size(), is_e4m3 ? 127u : 124u);
  EXPECT_EQ(values[1], std::ldexp(1.0F, is_e4m3 ? -9 : -16));
  EXPECT_EQ(values.back(), is_e4m3 ? 448.0F : 57344.0F);
  EXPECT_TRUE(std::is_sorted(values.begin(), values.end()));
  TypeParam code;
  code.bits = 0xff;
  EXPECT_TRUE(std::isnan(static_cast<float>(code)));
  code.bits = 0x7c;
  EXPECT_EQ(static_cast<float>(code), is_e4m3 ? 384.0F : std::numeric_limits<float>::infinity());
}

TYPED_TEST(Float8Test, EveryBf16ValueIsRoundedAsDefined) {
  const std::vector<float> values = values_of<TypeParam>();
  for (int exponent = -10; exponent < 10; ++exponent) {
    for (uint32_t bits = 0; bits < 65536; ++bits) {
      const float x = std::ldexp(std::bit_cast<float>(bits << 16), 3 * exponent);
      if (std::isnan(x)) {
        ASSERT_TRUE(std::isnan(static_cast<float>(TypeParam(x))));
      } else {
        ASSERT_EQ(TypeParam(x).bits, nearest_code(values, x)) << x;
      }
    }
  }
}

TYPED_TEST(Float8Test, Fp32ValuesAreRoundedAsDefined) {
  const std::vector<float> values = values_of<TypeParam>();
  for (uint32_t i = 0; i < 1000000; ++i) {
    const float x = i % 4 == 0 ? std::bit_cast<float>(philox(3, {i, 0, 0, 0})[0])
                               : static_cast<float>(normal_at(4, i) * std::exp(4.0 * normal_at(5, i)));
    if (std::isnan(x)) continue;
    ASSERT_EQ(TypeParam(x).bits, nearest_code(values, x)) << x;
  }
  for (size_t i = 0; i + 1 < values.size(); ++i) {
    const float middle = values[i] + (values[i + 1] - values[i]) / 2;
    for (const float x : {middle, std::nextafterf(middle, 0.0F), std::nextafterf(middle, 1e9F)}) {
      EXPECT_EQ(TypeParam(x).bits, nearest_code(values, x)) << x;
      EXPECT_EQ(TypeParam(-x).bits, nearest_code(values, -x)) << -x;
    }
  }
}

}  // namespace
}  // namespace megalith
