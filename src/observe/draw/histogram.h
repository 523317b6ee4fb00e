#pragma once

#include <cstdint>
#include <vector>

#include "observe/draw/surface.h"

namespace megalith::observe {

struct Histogram {
  double begin = 0.0;
  double width = 1.0;           // of a bin
  std::vector<int64_t> counts;  // values v with begin + i * width <= v < begin + (i + 1) * width
  int64_t below = 0;
  int64_t above = 0;

  // x: where a bin begins; y: its percentage of all values, those outside the bins included.
  std::vector<Point> percentages() const;
};

// `values` in any order, finite; bins of [begin, end), begin < end.
Histogram histogram_of(const std::vector<double>& values, double begin, double end, size_t bins);

}  // namespace megalith::observe
