#pragma once

#include <limits>
#include <string>
#include <vector>

namespace megalith::observe {

// One direction of a plot: from data to a share of the area and its round numbers.
struct Scale {
  double low = std::numeric_limits<double>::infinity();
  double high = -std::numeric_limits<double>::infinity();
  bool logarithmic = false;

  void take(double value);
  // So that it can divide: something to show even where nothing or one value was taken.
  void make_usable();
  // 0 at `low`, 1 at `high`; outside of [0, 1] for values outside. Not finite where there is no logarithm.
  double share_of(double value) const;
  // About `count` round numbers that cover the scale, or lie in it where it is logarithmic.
  std::vector<double> ticks(int count) const;
};

// Round numbers (1, 2 or 5 times a power of ten) that cover [low, high] with about `count` steps.
std::vector<double> nice_ticks(double low, double high, int count);

// Short enough for an axis: 1500 is "1.5k", 2e6 is "2M", 0.00012 is "0.00012", 1e-8 is "1e-8".
std::string short_number(double number);

// The same in the company of the axis's other numbers: all small ones are written with an exponent where one must be.
std::string axis_label(double tick, const std::vector<double>& ticks);

}  // namespace megalith::observe
