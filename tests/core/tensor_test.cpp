#include "core/tensor.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>
#include <vector>

namespace megalith {
namespace {

TEST(Tensor, SlicesKeepTheRowStride) {
  std::vector<float> values(12);
  std::iota(values.begin(), values.end(), 0.0F);
  const Tensor matrix(values.data(), DType::f32, {3, 4});
  const Tensor middle = matrix.slice_cols(1, 3);
  EXPECT_EQ(middle.rows(), 3);
  EXPECT_EQ(middle.cols(), 2);
  EXPECT_FALSE(middle.contiguous());
  EXPECT_EQ(middle.row<float>(2)[1], 10.0F);
  EXPECT_EQ(matrix.slice_rows(1, 3).row<float>(0)[0], 4.0F);
}

TEST(Tensor, RefusesTheWrongTypeAndShape) {
  float value = 0.0F;
  const Tensor scalar(&value, DType::f32, {1});
  EXPECT_THROW(scalar.as<double>(), Error);
  EXPECT_THROW(scalar.view({2}), Error);
  EXPECT_THROW(scalar.slice_rows(0, 2), Error);
}

TEST(DivExact, RefusesARemainder) {
  EXPECT_EQ(div_exact(12, 4), 3);
  EXPECT_THROW(div_exact(13, 4), Error);
}

TEST(Bfloat16, RoundsToNearestEvenAndKeepsSpecialValues) {
  EXPECT_EQ(static_cast<float>(bfloat16(1.0F)), 1.0F);
  // Halfway between 1 and the next bf16 goes to the even one; a little more goes up.
  EXPECT_EQ(static_cast<float>(bfloat16(1.0F + 0x1p-8F)), 1.0F);
  EXPECT_EQ(static_cast<float>(bfloat16(1.0F + 0x1p-8F + 0x1p-20F)), 1.0F + 0x1p-7F);
  EXPECT_TRUE(std::isnan(static_cast<float>(bfloat16(NAN))));
  EXPECT_EQ(static_cast<float>(bfloat16(INFINITY)), INFINITY);
}

}  // namespace
}  // namespace megalith
