#include "observe/svg_plot.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace megalith::observe {

namespace {
constexpr double kWidth = 520, kHeight = 300;
constexpr double kLeft = 56, kRight = 14, kTop = 34, kBottom = 42;
constexpr size_t kBuckets = 400;
constexpr size_t kHoverPoints = 80;

struct Range {
  double low = std::numeric_limits<double>::infinity();
  double high = -std::numeric_limits<double>::infinity();

  void take(double value) {
    if (!std::isfinite(value)) return;
    low = std::min(low, value);
    high = std::max(high, value);
  }
  void make_usable() {
    if (low > high) low = 0.0, high = 1.0;
    if (low == high) {
      const double margin = low == 0.0 ? 1.0 : std::abs(low) * 0.1;
      low -= margin;
      high += margin;
    }
  }
};

// Data coordinates to those of the picture.
struct Frame {
  Range x;
  Range y;

  double across(double value) const { return kLeft + (value - x.low) / (x.high - x.low) * (kWidth - kLeft - kRight); }
  double down(double value) const {
    return kHeight - kBottom - (value - y.low) / (y.high - y.low) * (kHeight - kTop - kBottom);
  }
};

bool finite(const Point& point) {
  return std::isfinite(point.x) && std::isfinite(point.y);
}

std::string axes(const Plot& plot, const Frame& frame, const std::vector<double>& xs, const std::vector<double>& ys) {
  std::string svg;
  for (const double value : ys) {
    const double y = frame.down(value);
    svg += fmt::format(R"(<line class="plot-grid" x1="{}" x2="{}" y1="{:.1f}" y2="{:.1f}"/>)", kLeft, kWidth - kRight,
                       y, y);
    svg += fmt::format(R"(<text class="plot-tick" x="{}" y="{:.1f}" text-anchor="end">{:.6g}</text>)", kLeft - 6, y + 4,
                       value);
  }
  for (const double value : xs) {
    if (value < frame.x.low || value > frame.x.high) continue;
    svg += fmt::format(R"(<text class="plot-tick" x="{:.1f}" y="{}" text-anchor="middle">{:.6g}</text>)",
                       frame.across(value), kHeight - kBottom + 16, value);
  }
  svg += fmt::format(R"(<line class="plot-axis" x1="{}" x2="{}" y1="{}" y2="{}"/>)", kLeft, kWidth - kRight,
                     kHeight - kBottom, kHeight - kBottom);
  svg += fmt::format(R"(<text class="plot-label" x="{}" y="{}" text-anchor="middle">{}</text>)",
                     (kLeft + kWidth - kRight) / 2, kHeight - 6, escape_html(plot.x_label));
  svg += fmt::format(R"(<text class="plot-label" x="{}" y="{}">{}</text>)", 4, kTop - 14, escape_html(plot.y_label));
  return svg;
}

std::string curve(const Series& series, const Frame& frame) {
  std::string path;
  bool drawing = false;
  size_t count = 0;
  for (const Point& point : thin_out(series.points, kBuckets)) {
    if (!finite(point)) {
      drawing = false;
      continue;
    }
    path += fmt::format("{}{:.1f} {:.1f}", drawing ? "L" : "M", frame.across(point.x), frame.down(point.y));
    drawing = true;
    ++count;
  }
  if (count == 0) return "";
  const std::string name = escape_html(series.css_class);
  std::string svg = fmt::format(R"(<path class="plot-line {}" d="{}"/>)", name, path);
  // Few points are worth seeing one by one.
  const bool dots = series.points.size() <= 30;
  const size_t stride = std::max<size_t>(1, series.points.size() / kHoverPoints);
  for (size_t i = 0; i < series.points.size(); i += stride) {
    const Point& point = series.points[i];
    if (!finite(point)) continue;
    svg += fmt::format(
        R"(<g class="{}"><circle class="{}" cx="{:.1f}" cy="{:.1f}" r="{}"/><title>{}: {:.6g} at {:.6g}</title></g>)",
        name, dots ? "plot-dot" : "plot-hover", frame.across(point.x), frame.down(point.y), dots ? 2.5 : 6.0,
        escape_html(series.label), point.y, point.x);
  }
  return svg;
}

std::string legend(const Plot& plot) {
  std::string svg;
  double right = kWidth - kRight;
  for (auto series = plot.series.rbegin(); series != plot.series.rend(); ++series) {
    if (series->points.empty()) continue;
    svg += fmt::format(R"(<text class="plot-tick" x="{:.1f}" y="{}" text-anchor="end">{}</text>)", right, kTop - 14,
                       escape_html(series->label));
    right -= 6.2 * static_cast<double>(series->label.size()) + 8;
    svg += fmt::format(R"(<line class="plot-line {}" x1="{:.1f}" x2="{:.1f}" y1="{}" y2="{}"/>)",
                       escape_html(series->css_class), right - 16, right, kTop - 18, kTop - 18);
    right -= 30;
  }
  return svg;
}
}  // namespace

std::string escape_html(std::string_view text) {
  std::string escaped;
  for (const char c : text) {
    switch (c) {
      case '&':
        escaped += "&amp;";
        break;
      case '<':
        escaped += "&lt;";
        break;
      case '>':
        escaped += "&gt;";
        break;
      case '"':
        escaped += "&quot;";
        break;
      case '\'':
        escaped += "&#39;";
        break;
      default:
        escaped += c;
    }
  }
  return escaped;
}

std::vector<double> nice_ticks(double low, double high, int count) {
  const double rough = (high - low) / std::max(1, count);
  if (!(rough > 0.0) || !std::isfinite(rough)) return {low};
  const double power = std::pow(10.0, std::floor(std::log10(rough)));
  double step = 10.0 * power;
  for (const double factor : {1.0, 2.0, 5.0}) {
    if (factor * power >= rough * 0.999) {
      step = factor * power;
      break;
    }
  }
  std::vector<double> ticks;
  const double first = std::floor(low / step + 1e-9);
  const double last = std::ceil(high / step - 1e-9);
  for (double i = first; i <= last && ticks.size() < 100; ++i) ticks.push_back(i == 0.0 ? 0.0 : i * step);
  return ticks;
}

std::vector<Point> thin_out(const std::vector<Point>& points, size_t buckets) {
  if (points.size() <= buckets * 2) return points;
  std::vector<Point> kept;
  for (size_t bucket = 0; bucket < buckets; ++bucket) {
    const auto begin = points.begin() + static_cast<std::ptrdiff_t>(points.size() * bucket / buckets);
    const auto end = points.begin() + static_cast<std::ptrdiff_t>(points.size() * (bucket + 1) / buckets);
    // Points that are not finite would make the comparison meaningless; one of them stands for the gap.
    const auto broken = std::find_if(begin, end, [](const Point& point) { return !finite(point); });
    if (broken != end) {
      kept.push_back(*broken);
      continue;
    }
    const auto [low, high] = std::minmax_element(begin, end, [](const Point& a, const Point& b) { return a.y < b.y; });
    kept.push_back(*std::min(low, high));
    if (low != high) kept.push_back(*std::max(low, high));
  }
  return kept;
}

std::string_view plot_style() {
  return R"(.plot{width:100%;height:auto;display:block}
.plot text{fill:var(--muted);font:12px system-ui,sans-serif}
.plot .plot-label{fill:var(--text)}
.plot .plot-grid{stroke:var(--grid);stroke-width:1}
.plot .plot-axis{stroke:var(--muted);stroke-width:1}
.plot .plot-line{fill:none;stroke-width:2;stroke-linejoin:round;stroke-linecap:round}
.plot .plot-dot{stroke:none}
.plot .plot-hover{opacity:0}
.plot g:hover .plot-hover{opacity:.5}
)";
}

std::string svg_plot(const Plot& plot) {
  Frame frame;
  for (const Series& series : plot.series) {
    for (const Point& point : series.points) {
      if (!finite(point)) continue;
      frame.x.take(point.x);
      frame.y.take(point.y);
    }
  }
  if (plot.from_zero) frame.y.take(0.0);
  frame.x.make_usable();
  frame.y.make_usable();
  const std::vector<double> xs = nice_ticks(frame.x.low, frame.x.high, 6);
  const std::vector<double> ys = nice_ticks(frame.y.low, frame.y.high, 5);
  frame.y = {.low = ys.front(), .high = ys.back()};
  frame.y.make_usable();

  std::string svg = fmt::format(R"(<svg class="plot" viewBox="0 0 {} {}" role="img" aria-label="{}"><title>{}</title>)",
                                kWidth, kHeight, escape_html(plot.title), escape_html(plot.title));
  svg += axes(plot, frame, xs, ys);
  for (const Series& series : plot.series) svg += curve(series, frame);
  if (plot.series.size() > 1) svg += legend(plot);
  return svg + "</svg>";
}

}  // namespace megalith::observe
