#include "ops/cpu/math.h"

#include <gtest/gtest.h>

namespace megalith::ops::cpu {
namespace {

TEST(FastExp, IsAccurateOverItsRange) {
  double worst = 0.0;
  for (double x = -87.3; x < 88.3; x += 0.000997) {
    const auto argument = static_cast<float>(x);
    const double exact = std::exp(static_cast<double>(argument));
    worst = std::max(worst, std::abs(static_cast<double>(fast_exp(argument)) - exact) / exact);
  }
  EXPECT_LT(worst, 2e-7);
  EXPECT_EQ(fast_exp(0.0F), 1.0F);
}

TEST(FastExp, HasTheRightLimits) {
  EXPECT_EQ(fast_exp(-INFINITY), 0.0F);
  EXPECT_EQ(fast_exp(-1000.0F), 0.0F);
  EXPECT_EQ(fast_exp(-std::numeric_limits<float>::max()), 0.0F);
  EXPECT_EQ(fast_exp(INFINITY), INFINITY);
  EXPECT_EQ(fast_exp(1000.0F), INFINITY);
  EXPECT_TRUE(std::isnan(fast_exp(NAN)));
  EXPECT_TRUE(std::isnan(fast_exp(-NAN)));
}

}  // namespace
}  // namespace megalith::ops::cpu
