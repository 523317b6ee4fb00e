#include "observe/draw/scale.h"

#include <gtest/gtest.h>

#include <cmath>

namespace megalith::observe {
namespace {

TEST(NiceTicks, AreRoundAndCoverTheRange) {
  EXPECT_EQ(nice_ticks(0, 10, 5), (std::vector<double>{0, 2, 4, 6, 8, 10}));
  EXPECT_EQ(nice_ticks(6.1, 11.06, 5), (std::vector<double>{6, 7, 8, 9, 10, 11, 12}));
  EXPECT_EQ(nice_ticks(-1, 1, 4), (std::vector<double>{-1, -0.5, 0, 0.5, 1}));
  EXPECT_EQ(nice_ticks(3, 3, 5), (std::vector<double>{3}));
  EXPECT_LE(nice_ticks(0, std::numeric_limits<double>::infinity(), 5).size(), 1u);
}

TEST(Scale, OfLogarithmsHasTicksInEveryRange) {
  EXPECT_EQ((Scale{.low = 1, .high = 1000, .logarithmic = true}.ticks(5)),
            (std::vector<double>{1, 2, 5, 10, 20, 50, 100, 200, 500, 1000}));
  EXPECT_EQ((Scale{.low = 1e-9, .high = 1, .logarithmic = true}.ticks(5).size()), 10u);
  EXPECT_GE((Scale{.low = 2.1, .high = 3.4, .logarithmic = true}.ticks(5).size()), 3u);
  EXPECT_DOUBLE_EQ((Scale{.low = 1, .high = 100, .logarithmic = true}.share_of(10)), 0.5);
  EXPECT_FALSE(std::isfinite(Scale{.low = 1, .high = 100, .logarithmic = true}.share_of(-1)));
}

TEST(Scale, CopesWithNothingAndWithOneValue) {
  Scale nothing;
  nothing.make_usable();
  EXPECT_LT(nothing.low, nothing.high);
  Scale one;
  one.take(5.0);
  one.take(std::nan(""));
  one.make_usable();
  EXPECT_DOUBLE_EQ(one.share_of(5.0), 0.5);
}

TEST(ShortNumber, FitsAnAxis) {
  EXPECT_EQ(short_number(0), "0");
  EXPECT_EQ(short_number(1500), "1.5k");
  EXPECT_EQ(short_number(-2e6), "-2M");
  EXPECT_EQ(short_number(0.0003), "0.0003");
  EXPECT_EQ(short_number(1e-8), "1e-8");
}

TEST(AxisLabel, IsWrittenLikeItsNeighbours) {
  const std::vector<double> small = nice_ticks(0.0, 1.5e-4, 3);
  std::string labels;
  for (const double tick : small) labels += axis_label(tick, small) + " ";
  EXPECT_EQ(labels, "0 5e-5 1e-4 1.5e-4 ");
  EXPECT_EQ(axis_label(0.0001, {0.0, 0.0001, 0.0002}), "0.0001");
  EXPECT_EQ(axis_label(1.0, {1e-5, 1e-3, 1.0, 1e3}), "1");
}

}  // namespace
}  // namespace megalith::observe
