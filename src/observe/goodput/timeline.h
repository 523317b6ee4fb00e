#pragma once

#include <array>
#include <cstdint>

#include "observe/goodput/wall_time.h"

namespace megalith::observe {

// Wall time cut into slices from its begin on, so that they cannot overlap or leave gaps. In whole microseconds, so
// that they add up.
class Timeline {
 public:
  // Steps share slices until those are `resolution` microseconds long.
  Timeline(int64_t begin, int64_t resolution)
      : begin_(begin), now_(begin), pending_begin_(begin), resolution_(resolution) {}

  int64_t now() const { return now_; }
  TimeUse last_use() const { return last_use_; }

  // From now until then; nothing where that has passed.
  void add(TimeUse use, int64_t until, int64_t step = -1);
  // For so many microseconds, but not beyond `latest`.
  void add_for(TimeUse use, double micros, int64_t latest, int64_t step = -1);

  struct Mark {
    double time = 0.0;  // seconds since the epoch
    std::array<int64_t, kTimeUses> totals{};
  };
  Mark mark() const;

  WallTime finish() &&;

 private:
  void append(TimeUse use, int64_t begin, int64_t end, int64_t step);
  void flush();

  int64_t begin_;
  int64_t now_;
  TimeUse last_use_ = TimeUse::unknown;
  std::array<int64_t, kTimeUses> totals_{};
  std::array<int64_t, kTimeUses> pending_{};  // of steps that share slices
  int64_t pending_begin_;
  int64_t pending_step_ = -1;
  int64_t resolution_;
  std::vector<TimeSlice> slices_;
};

}  // namespace megalith::observe
