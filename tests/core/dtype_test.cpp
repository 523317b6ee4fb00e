#include "core/dtype.h"

#include <gtest/gtest.h>

#include <cmath>

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

}  // namespace
}  // namespace megalith
