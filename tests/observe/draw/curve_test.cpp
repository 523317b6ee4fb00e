#include "observe/draw/curve.h"

#include <gtest/gtest.h>

#include <cmath>

namespace megalith::observe {
namespace {

TEST(Curve, KeepsTheLastWordOfEachStepInOrder) {
  Curve curve;
  for (int64_t step = 0; step < 5; ++step) curve.set(step, 1.0);
  for (int64_t step = 3; step < 5; ++step) curve.set(step, 2.0);  // run again
  curve.set(7, 3.0);
  curve.set(6, 4.0);
  EXPECT_EQ(curve.size(), 7u);
  EXPECT_EQ(curve.at(3), 2.0);
  EXPECT_EQ(curve.at(6), 4.0);
  EXPECT_EQ(curve.at(5), std::nullopt);
  EXPECT_EQ(curve.last(), 3.0);
}

TEST(Quantile, LiesBetweenNeighbours) {
  const std::vector<double> sorted = {1, 2, 3, 4};
  EXPECT_EQ(quantile(sorted, 0.0), 1.0);
  EXPECT_EQ(quantile(sorted, 0.5), 2.5);
  EXPECT_EQ(quantile(sorted, 1.0), 4.0);
}

TEST(Smooth, MeansNeighboursAndPassesOverNan) {
  const std::vector<Point> means = smooth({{0, 8}, {1, 2}, {2, std::nan("")}, {3, 4}, {4, 6}}, 2);
  ASSERT_EQ(means.size(), 5u);
  EXPECT_EQ(means[0].y, 8.0);  // where a loss falls steeply the window is narrow
  EXPECT_EQ(means[1].y, 5.0);
  EXPECT_EQ(means[2].y, 3.0);
  EXPECT_EQ(means[3].y, 5.0);
  EXPECT_EQ(means[4].y, 5.0);
}

TEST(ThinOut, KeepsExtremesAndOrder) {
  std::vector<Point> points;
  for (int i = 0; i < 100000; ++i) points.push_back({static_cast<double>(i), std::sin(i * 0.001)});
  points[55555].y = 100.0;
  const std::vector<Point> thin = thin_out(points, 400);
  EXPECT_LE(thin.size(), 800u);
  bool spike = false;
  for (size_t i = 0; i < thin.size(); ++i) {
    spike = spike || thin[i].y == 100.0;
    if (i > 0) {
      EXPECT_LT(thin[i - 1].x, thin[i].x);
    }
  }
  EXPECT_TRUE(spike);
}

}  // namespace
}  // namespace megalith::observe
