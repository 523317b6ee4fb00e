#include <cmath>

#include "ops/cases/activation.h"
#include "ops/op_test.h"

namespace megalith::ops::testing {
namespace {

TEST(Activation, LargeInputsSaturateAndNanStays) {
  const double huge = 1e4;
  for (const Named& out : run_everywhere(run_gelu({1, 4, 0}), DType::f32, {{"x", {huge, -huge, NAN, INFINITY}}})) {
    EXPECT_EQ(out.at("y")[0], huge);
    EXPECT_EQ(out.at("y")[1], 0.0);
    EXPECT_TRUE(std::isnan(out.at("y")[2]));
    EXPECT_FALSE(std::isfinite(out.at("y")[3]));
  }
}

}  // namespace
}  // namespace megalith::ops::testing
