#include "observe/draw/histogram.h"

#include <numeric>

namespace megalith::observe {

std::vector<Point> Histogram::percentages() const {
  const int64_t all = std::accumulate(counts.begin(), counts.end(), below + above);
  std::vector<Point> points;
  for (size_t i = 0; i < counts.size(); ++i) {
    const double share = all > 0 ? static_cast<double>(counts[i]) / static_cast<double>(all) : 0.0;
    points.push_back({.x = begin + width * static_cast<double>(i), .y = 100.0 * share});
  }
  return points;
}

Histogram histogram_of(const std::vector<double>& values, double begin, double end, size_t bins) {
  Histogram histogram{.begin = begin, .width = (end - begin) / static_cast<double>(bins), .counts = {}};
  histogram.counts.resize(bins, 0);
  for (const double value : values) {
    if (value < begin) {
      ++histogram.below;
    } else if (value >= end) {
      ++histogram.above;
    } else {
      const auto bin = static_cast<size_t>((value - begin) / histogram.width);
      ++histogram.counts[std::min(bin, bins - 1)];
    }
  }
  return histogram;
}

}  // namespace megalith::observe
