#include "observe/draw/svg/svg_plot.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace megalith::observe {
namespace {

size_t count(const std::string& text, const std::string& part) {
  size_t found = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++found;
  return found;
}

TEST(SvgPlot, DrawsAndEscapes) {
  const Plot plot{.name = "loss",
                  .title = "<Loss>",
                  .x_label = "step",
                  .y_label = "loss",
                  .series = {{"a & b", "train", {{0, 3}, {1, 2}, {2, 1}}}, {"empty", "validation", {}}}};
  const std::string svg = svg_figure(plot);
  EXPECT_TRUE(svg.starts_with("<figure") && svg.ends_with("</figure>\n"));
  EXPECT_NE(svg.find("&lt;Loss&gt;"), std::string::npos);
  EXPECT_NE(svg.find("a &amp; b"), std::string::npos);
  EXPECT_NE(svg.find("stroke=\"var(--train)\""), std::string::npos);
  EXPECT_EQ(svg.find("nan"), std::string::npos);
  EXPECT_EQ(count(svg, "class=\"area\""), 1u);
}

TEST(SvgPlot, OffersALogarithmicView) {
  const Plot plot{.title = "t", .series = {{"s", "train", {{0, -1}, {1, 10}, {2, 1000}}}}, .offers_log = true};
  const std::string svg = svg_figure(plot);
  EXPECT_EQ(count(svg, "class=\"area\""), 2u);
  EXPECT_EQ(svg.find("inf"), std::string::npos);
}

TEST(SvgPlot, CopesWithNothingAndWithNonsense) {
  const double nan = std::nan("");
  const double infinity = std::numeric_limits<double>::infinity();
  const std::vector<std::vector<Point>> cases = {{},
                                                 {{0, 0}},
                                                 {{5, nan}},
                                                 {{0, 1}, {1, nan}, {2, infinity}, {3, 1}},
                                                 {{0, 1e300}, {1, -1e300}},
                                                 {{0, 1e308}, {1, -1e308}},
                                                 {{0, 1e-300}, {1, 2e-300}},
                                                 {{0, 3e-310}, {1, 5e-324}}};
  for (const std::vector<Point>& points : cases) {
    for (const Mark mark : {Mark::line, Mark::faint, Mark::dots, Mark::columns, Mark::stacked}) {
      const std::string svg = svg_figure(Plot{
          .title = "t", .x_label = "x", .y_label = "y", .series = {{"s", "train", points, mark}}, .offers_log = true});
      EXPECT_EQ(svg.find("nan"), std::string::npos) << svg;
      EXPECT_EQ(svg.find("inf"), std::string::npos) << svg;
    }
  }
}

TEST(Axes, LeaveFewExtremesOutAndSayHowMany) {
  Plot plot{.series = {{"s", "train", {}}}};
  for (int i = 0; i < 1000; ++i) plot.series[0].points.push_back({static_cast<double>(i), 1.0 + i * 1e-3});
  EXPECT_EQ(axes_of(plot).hidden, 0);
  plot.series[0].points[500].y = 1000.0;
  const Axes axes = axes_of(plot);
  EXPECT_EQ(axes.hidden, 1);
  EXPECT_LT(axes.y.high, 4.0);
  Plot all = plot;
  all.shows_all = true;
  EXPECT_EQ(axes_of(all).hidden, 0);
  plot.logarithmic = true;
  EXPECT_EQ(axes_of(plot).hidden, 0);
}

TEST(SvgPlot, KeepsDashedLinesOutOfLabels) {
  Plot plot{.series = {{"s", "train", {{0, 3}, {100, 2}}}}, .moments = {{50, "99%"}, {40, "median"}}};
  const std::string svg = svg_figure(plot);
  EXPECT_NE(svg.find(R"(x1="40.00%" y1="0.00%")"), std::string::npos) << svg;
  EXPECT_NE(svg.find(R"(x1="50.00%" y1="5.91%")"), std::string::npos) << svg;  // below the first label
  plot.moments[0].x = 90;
  EXPECT_NE(svg_figure(plot).find(R"(x1="90.00%" y1="0.00%")"), std::string::npos);
}

TEST(SvgBars, ShowPartsLabelsAndValues) {
  const Bars bars{.name = "memory",
                  .title = "Memory",
                  .bars = {{"weights", {{"weights", "memory", 3.0, "3 <GiB>"}}, "3 GiB"}, {"none", {}, "0"}}};
  const std::string svg = svg_figure(bars);
  EXPECT_NE(svg.find("width=\"100.000%\""), std::string::npos);
  EXPECT_NE(svg.find("3 &lt;GiB&gt;"), std::string::npos);
}

}  // namespace
}  // namespace megalith::observe
