#include "observe/draw/histogram.h"

#include <gtest/gtest.h>

namespace megalith::observe {
namespace {

TEST(Histogram, CountsEveryValueOnce) {
  const Histogram histogram = histogram_of({-1.0, 0.0, 0.9, 1.0, 3.999, 4.0, 9.0}, 0.0, 4.0, 4);
  EXPECT_EQ(histogram.counts, (std::vector<int64_t>{2, 1, 0, 1}));
  EXPECT_EQ(histogram.below, 1);
  EXPECT_EQ(histogram.above, 2);
  const std::vector<Point> percentages = histogram.percentages();
  EXPECT_EQ(percentages[1].x, 1.0);
  EXPECT_DOUBLE_EQ(percentages[0].y, 200.0 / 7.0);
}

TEST(Histogram, OfNothingIsEmpty) {
  for (const Point& point : histogram_of({}, 0.0, 1.0, 3).percentages()) EXPECT_EQ(point.y, 0.0);
}

}  // namespace
}  // namespace megalith::observe
