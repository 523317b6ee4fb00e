#pragma once

#include <algorithm>
#include <cstdint>

namespace megalith::parallel {

// From `begin` up to, not including, `end`.
struct Interval {
  int64_t begin = 0;
  int64_t end = 0;

  int64_t size() const { return end - begin; }
  bool empty() const { return end <= begin; }
  bool contains(int64_t value) const { return begin <= value && value < end; }
  bool operator==(const Interval&) const = default;
};

inline Interval intersection(const Interval& a, const Interval& b) {
  return {std::max(a.begin, b.begin), std::min(a.end, b.end)};
}
inline Interval shifted(const Interval& interval, int64_t by) {
  return {interval.begin + by, interval.end + by};
}

}  // namespace megalith::parallel
