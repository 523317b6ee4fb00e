#include "observe/svg_plot.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace megalith::observe {
namespace {

TEST(NiceTicks, AreRoundAndCoverTheRange) {
  EXPECT_EQ(nice_ticks(0, 10, 5), (std::vector<double>{0, 2, 4, 6, 8, 10}));
  EXPECT_EQ(nice_ticks(6.1, 11.06, 5), (std::vector<double>{6, 7, 8, 9, 10, 11, 12}));
  EXPECT_EQ(nice_ticks(-1, 1, 4), (std::vector<double>{-1, -0.5, 0, 0.5, 1}));
  EXPECT_EQ(nice_ticks(3, 3, 5), (std::vector<double>{3}));
  EXPECT_LE(nice_ticks(0, std::numeric_limits<double>::infinity(), 5).size(), 1u);
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

TEST(SvgPlot, DrawsAndEscapes) {
  Plot plot{.title = "<Loss>",
            .x_label = "step",
            .y_label = "loss",
            .series = {{"a & b", "train", {{0, 3}, {1, 2}, {2, 1}}}, {"empty", "validation", {}}}};
  const std::string svg = svg_plot(plot);
  EXPECT_TRUE(svg.starts_with("<svg") && svg.ends_with("</svg>"));
  EXPECT_NE(svg.find("&lt;Loss&gt;"), std::string::npos);
  EXPECT_NE(svg.find("a &amp; b: 2 at 1"), std::string::npos);
  EXPECT_EQ(svg.find("nan"), std::string::npos);
}

TEST(SvgPlot, CopesWithNothingAndWithNonsense) {
  const double nan = std::nan("");
  const double infinity = std::numeric_limits<double>::infinity();
  const std::vector<std::vector<Point>> cases = {{},
                                                 {{0, 0}},
                                                 {{5, nan}},
                                                 {{0, 1}, {1, nan}, {2, infinity}, {3, 1}},
                                                 {{0, 1e300}, {1, -1e300}},
                                                 {{0, 1e-300}, {1, 2e-300}}};
  for (const std::vector<Point>& points : cases) {
    const std::string svg = svg_plot({.title = "t", .x_label = "x", .y_label = "y", .series = {{"s", "c", points}}});
    EXPECT_EQ(svg.find("nan"), std::string::npos) << svg;
    EXPECT_EQ(svg.find("inf"), std::string::npos) << svg;
  }
}

}  // namespace
}  // namespace megalith::observe
