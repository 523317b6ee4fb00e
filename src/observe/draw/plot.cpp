#include "observe/draw/plot.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "observe/draw/curve.h"

namespace megalith::observe {

namespace {

constexpr size_t kBuckets = 450;
constexpr size_t kManyPoints = 300;
constexpr double kExtreme = 0.01;  // of many points on either side may lie outside
constexpr double kRoomAround = 0.05;

bool is_columns(const Series& series) {
  return series.mark == Mark::columns || series.mark == Mark::stacked;
}

void take_values(const Series& series, bool all, Scale& y) {
  // A logarithmic axis has room for all.
  if (all || series.points.size() < kManyPoints || is_columns(series) || y.logarithmic) {
    for (const Point& point : series.points) y.take(point.y);
    return;
  }
  const std::vector<double> values = sorted_values(series.points);
  if (values.empty()) return;
  const double low = quantile(values, kExtreme);
  const double high = quantile(values, 1.0 - kExtreme);
  // Only what would squeeze the rest is left out.
  const double room = (high - low) * 0.5;
  y.take(std::max(values.front(), low - room));
  y.take(std::min(values.back(), high + room));
}

double top_of_stack(const std::vector<Series>& series) {
  double top = 0.0;
  for (size_t i = 0; !series.empty() && i < series.front().points.size(); ++i) {
    double sum = 0.0;
    for (const Series& one : series) sum += i < one.points.size() ? one.points[i].y : 0.0;
    top = std::max(top, sum);
  }
  return top;
}

// Some room above and below, but none below zero where that is the ground.
void add_room(Scale& y, bool from_zero) {
  y.make_usable();
  if (y.logarithmic) {
    const double room = std::pow(y.high / y.low, kRoomAround);
    y.low /= room;
    y.high *= room;
    return;
  }
  const double room = (y.high / 2 - y.low / 2) * 2 * kRoomAround;
  if (!std::isfinite(room)) return;
  if (!(from_zero && y.low >= 0.0)) y.low -= room;
  y.high += room;
}

// A round number just behind the end belongs to the axis: 100,000 steps end with the step 99,999.
void round_end(Scale& x) {
  const double step = x.high - x.low;
  for (const double tick : x.ticks(5)) {
    if (tick > x.high && tick - x.high < 0.01 * step) x.high = tick;
  }
}

class Drawing {
 public:
  Drawing(const Plot& plot, const Axes& axes, Surface& surface) : plot_(plot), axes_(axes), surface_(surface) {}

  void draw() {
    draw_axes();
    std::vector<double> floors;  // of stacked columns
    for (const Series& series : plot_.series) {
      if (is_columns(series)) {
        draw_columns(series, floors);
      } else {
        draw_curve(series);
      }
    }
    draw_moments();
    if (axes_.hidden > 0) {
      surface_.text({.across = 1, .dx = -4, .dy = 12}, fmt::format("{} beyond the frame", axes_.hidden),
                    {.anchor = Anchor::end, .size = 10.5});
    }
  }

 private:
  Point shares_of(const Point& point) const { return {axes_.x.share_of(point.x), 1.0 - axes_.y.share_of(point.y)}; }

  void draw_axes() {
    const std::vector<double> heights = axes_.y.ticks(6);
    for (const double tick : heights) {
      const double down = 1.0 - axes_.y.share_of(tick);
      if (down < -1e-9 || down > 1.0 + 1e-9) continue;
      surface_.line({.across = 0, .down = down}, {.across = 1, .down = down}, {.ink = "grid"});
      surface_.text({.down = down, .dx = -7, .dy = 4}, axis_label(tick, heights), {.anchor = Anchor::end});
    }
    const std::vector<double> places = axes_.x.ticks(5);
    for (const double tick : places) {
      const double across = axes_.x.share_of(tick);
      if (across < -1e-9 || across > 1.0 + 1e-9) continue;
      surface_.line({.across = across, .down = 1}, {.across = across, .down = 1, .dy = 4}, {.ink = "muted"});
      surface_.text({.across = across, .down = 1, .dy = 17}, axis_label(tick, places), {.anchor = Anchor::middle});
    }
    surface_.line({.down = 1}, {.across = 1, .down = 1}, {.ink = "muted"});
    surface_.text({.across = 0.5, .down = 1, .dy = 34}, plot_.x_label, {.ink = "text", .anchor = Anchor::middle});
  }

  void draw_curve(const Series& series) {
    std::vector<Point> shares;
    for (const Point& point : thin_out(series.points, kBuckets)) shares.push_back(shares_of(point));
    const bool faint = series.mark == Mark::faint;
    // The more points, the denser the strokes.
    const double opacity = series.points.size() > 4 * kBuckets ? 0.25 : 0.4;
    surface_.curve(shares, {.ink = series.ink, .width = faint ? 1.0 : 2.0, .opacity = faint ? opacity : 1.0});
    if (series.mark != Mark::dots && series.points.size() > 1) return;
    for (const Point& share : shares) {
      const bool inside = share.x >= 0 && share.x <= 1 && share.y >= 0 && share.y <= 1;
      if (inside) surface_.dot({.across = share.x, .down = share.y}, 3.0, series.ink);
    }
  }

  void draw_columns(const Series& series, std::vector<double>& floors) {
    floors.resize(std::max(floors.size(), series.points.size()), 0.0);
    std::vector<Rectangle> boxes;
    for (size_t i = 0; i < series.points.size(); ++i) {
      const Point& point = series.points[i];
      const double floor = series.mark == Mark::stacked ? floors[i] : 0.0;
      const double left = axes_.x.share_of(point.x);
      const double width = axes_.x.share_of(point.x + plot_.column_width) - left;
      const double top = 1.0 - axes_.y.share_of(floor + point.y);
      const double height = 1.0 - axes_.y.share_of(floor) - top;
      if (std::isfinite(height) && height > 0.0) boxes.push_back({left, top, width, height});
      if (series.mark == Mark::stacked) floors[i] += point.y;
    }
    surface_.boxes(boxes, series.ink, series.mark == Mark::stacked ? 1.0 : 0.55);
  }

  // A label stands beside its line. Lines that follow soon begin below it, so that none runs through it.
  void draw_moments() {
    constexpr double kNear = 0.3, kRow = 13.0;
    std::vector<Moment> moments = plot_.moments;
    std::stable_sort(moments.begin(), moments.end(), [](const Moment& a, const Moment& b) { return a.x < b.x; });
    double labelled = -1.0;  // where the last label is
    double top = 0.0;        // pixels above the line
    for (const Moment& moment : moments) {
      const double across = axes_.x.share_of(moment.x);
      if (!(across >= 0.0 && across <= 1.0)) continue;
      const bool near = labelled >= 0.0 && across - labelled < kNear;
      if (!near) top = 0.0;
      surface_.line({.across = across, .down = top / sheet_of(plot_).height}, {.across = across, .down = 1},
                    {.ink = "muted", .dashed = true});
      if (moment.label.empty()) continue;
      // At the right there is room to the left only, unless a label is there.
      const bool to_the_right = across < 0.8 || near;
      surface_.text({.across = across, .dx = to_the_right ? 4.0 : -4.0, .dy = top + 12.0}, moment.label,
                    {.anchor = to_the_right ? Anchor::start : Anchor::end, .size = 10.5});
      labelled = across;
      top += kRow;
    }
  }

  const Plot& plot_;
  const Axes& axes_;
  Surface& surface_;
};

}  // namespace

Axes axes_of(const Plot& plot) {
  Axes axes;
  axes.y.logarithmic = plot.logarithmic;
  for (const Series& series : plot.series) {
    for (const Point& point : series.points) {
      if (!std::isfinite(point.y)) continue;
      axes.x.take(point.x);
      if (is_columns(series)) axes.x.take(point.x + plot.column_width);
    }
    take_values(series, plot.shows_all, axes.y);
    if (series.mark == Mark::stacked) axes.y.take(top_of_stack(plot.series));
  }
  if (plot.from_zero) axes.y.take(0.0);
  axes.x.make_usable();
  round_end(axes.x);
  const bool full = !plot.series.empty() && plot.series.front().mark == Mark::stacked;
  if (!full) add_room(axes.y, plot.from_zero);
  axes.y.make_usable();
  for (const Series& series : plot.series) {
    if (series.mark == Mark::line && plot.series.size() > 1) continue;  // a mean of points that are counted already
    for (const Point& point : series.points) axes.hidden += point.y > axes.y.high || point.y < axes.y.low ? 1 : 0;
  }
  return axes;
}

Sheet sheet_of(const Plot& plot) {
  return {.height = plot.wide ? 300.0 : 220.0};
}

void draw(const Plot& plot, const Axes& axes, Surface& surface) {
  Drawing(plot, axes, surface).draw();
}

}  // namespace megalith::observe
