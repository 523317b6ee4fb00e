#include "observe/draw/curve.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace megalith::observe {

namespace {

bool finite(const Point& point) {
  return std::isfinite(point.x) && std::isfinite(point.y);
}

}  // namespace

void Curve::set(int64_t step, double value) {
  const Point point{.x = static_cast<double>(step), .y = value};
  if (points_.empty() || points_.back().x < point.x) {
    points_.push_back(point);
    return;
  }
  const auto at = std::lower_bound(points_.begin(), points_.end(), point.x,
                                   [](const Point& known, double x) { return known.x < x; });
  if (at->x == point.x) {
    at->y = value;
  } else {
    points_.insert(at, point);
  }
}

std::optional<double> Curve::at(int64_t step) const {
  const auto x = static_cast<double>(step);
  const auto found = std::lower_bound(points_.begin(), points_.end(), x,
                                      [](const Point& known, double wanted) { return known.x < wanted; });
  if (found == points_.end() || found->x != x) return std::nullopt;
  return found->y;
}

std::optional<double> Curve::last() const {
  if (points_.empty()) return std::nullopt;
  return points_.back().y;
}

std::vector<double> sorted_values(const std::vector<Point>& points) {
  std::vector<double> values;
  values.reserve(points.size());
  for (const Point& point : points) {
    if (std::isfinite(point.y)) values.push_back(point.y);
  }
  std::sort(values.begin(), values.end());
  return values;
}

double quantile(const std::vector<double>& sorted, double share) {
  const double place = std::clamp(share, 0.0, 1.0) * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<size_t>(place);
  const size_t above = std::min(below + 1, sorted.size() - 1);
  return std::lerp(sorted[below], sorted[above], place - static_cast<double>(below));
}

std::optional<double> median(const Curve& curve) {
  const std::vector<double> values = sorted_values(curve.points());
  if (values.empty()) return std::nullopt;
  return quantile(values, 0.5);
}

std::vector<Point> smooth(const std::vector<Point>& points, size_t window) {
  std::vector<double> sums(points.size() + 1, 0.0);
  std::vector<size_t> counts(points.size() + 1, 0);
  for (size_t i = 0; i < points.size(); ++i) {
    const bool usable = finite(points[i]);
    sums[i + 1] = sums[i] + (usable ? points[i].y : 0.0);
    counts[i + 1] = counts[i] + (usable ? 1 : 0);
  }
  std::vector<Point> means;
  means.reserve(points.size());
  for (size_t i = 0; i < points.size(); ++i) {
    const size_t half = std::min(window / 2, i);
    const size_t begin = i - half;
    const size_t end = std::min(i + half + 1, points.size());
    const size_t count = counts[end] - counts[begin];
    const double mean =
        count > 0 ? (sums[end] - sums[begin]) / static_cast<double>(count) : std::numeric_limits<double>::quiet_NaN();
    means.push_back({.x = points[i].x, .y = mean});
  }
  return means;
}

size_t smoothing_window(size_t points) {
  return points < 50 ? 1 : static_cast<size_t>(std::sqrt(static_cast<double>(points)));
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

}  // namespace megalith::observe
