#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "observe/draw/surface.h"

namespace megalith::observe {

// One number of a run by step. Where steps were run again after a restart, the last word counts.
class Curve {
 public:
  void set(int64_t step, double value);

  bool empty() const { return points_.empty(); }
  size_t size() const { return points_.size(); }
  // By rising step.
  const std::vector<Point>& points() const { return points_; }
  std::optional<double> at(int64_t step) const;
  std::optional<double> last() const;

 private:
  std::vector<Point> points_;
};

// The finite values, sorted.
std::vector<double> sorted_values(const std::vector<Point>& points);

// Of sorted values that are not empty; `share` 0.5 is the median.
double quantile(const std::vector<double>& sorted, double share);

std::optional<double> median(const Curve& curve);

// The mean over `window` neighbours of each point, half of them on either side. At the beginning, where a loss falls
// steeply, the window narrows so that it stays centred. Points that are not finite are left out of the means.
std::vector<Point> smooth(const std::vector<Point>& points, size_t window);

// A window that turns a noisy curve into a line that can be followed; 1 where there are too few points to hide.
size_t smoothing_window(size_t points);

// At most `buckets` x 2 points: the lowest and the highest of each stretch.
std::vector<Point> thin_out(const std::vector<Point>& points, size_t buckets);

}  // namespace megalith::observe
