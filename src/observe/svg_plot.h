#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace megalith::observe {

struct Point {
  double x = 0.0;
  double y = 0.0;  // a point that is not finite breaks the line
};

struct Series {
  std::string label;
  std::string css_class;      // decides the colour: .<class> { stroke: ...; fill: ... }
  std::vector<Point> points;  // by rising x
};

struct Plot {
  std::string title;
  std::string x_label;
  std::string y_label;
  std::vector<Series> series;
  bool from_zero = false;  // for quantities whose size matters, not only their change
};

// A line chart as an <svg> element that scales to its container. It uses the classes of plot_style(). Long series are
// thinned to what can be seen, keeping the extremes; single points show as dots; hovering shows values.
std::string svg_plot(const Plot& plot);

// The CSS rules that svg_plot() relies on, for once per page; colours come from --text, --muted and --grid.
std::string_view plot_style();

// Round numbers (1, 2 or 5 times a power of ten) that cover [low, high] with about `count` steps.
std::vector<double> nice_ticks(double low, double high, int count);

// At most `buckets` x 2 points: the lowest and the highest of each stretch.
std::vector<Point> thin_out(const std::vector<Point>& points, size_t buckets);

std::string escape_html(std::string_view text);

}  // namespace megalith::observe
