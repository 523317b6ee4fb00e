#include "observe/goodput/timeline.h"

#include <algorithm>

namespace megalith::observe {

namespace {
constexpr double kMicros = 1e6;

bool is_of_steps(TimeUse use) {
  return use == TimeUse::productive || use == TimeUse::slowdown || use == TimeUse::data_wait;
}

double to_seconds(int64_t micros) {
  return static_cast<double>(micros) / kMicros;
}
}  // namespace

void Timeline::add(TimeUse use, int64_t until, int64_t step) {
  if (until <= now_) return;
  last_use_ = use;
  totals_[static_cast<size_t>(use)] += until - now_;
  if (is_of_steps(use)) {
    if (pending_begin_ == now_) pending_step_ = step;
    pending_[static_cast<size_t>(use)] += until - now_;
    now_ = until;
    if (now_ - pending_begin_ >= resolution_) flush();
    return;
  }
  flush();
  append(use, now_, until, step);
  now_ = until;
  pending_begin_ = now_;
}

void Timeline::add_for(TimeUse use, double micros, int64_t latest, int64_t step) {
  const auto longest = static_cast<double>(std::max<int64_t>(0, latest - now_));
  add(use, now_ + static_cast<int64_t>(std::clamp(micros, 0.0, longest)), step);
}

void Timeline::append(TimeUse use, int64_t begin, int64_t end, int64_t step) {
  if (!slices_.empty() && slices_.back().use == use && use != TimeUse::productive) {
    slices_.back().end = to_seconds(end);
    return;
  }
  slices_.push_back({.use = use, .begin = to_seconds(begin), .end = to_seconds(end), .step = step});
}

void Timeline::flush() {
  int64_t at = pending_begin_;
  for (size_t use = 0; use < kTimeUses; ++use) {
    if (pending_[use] == 0) continue;
    append(static_cast<TimeUse>(use), at, at + pending_[use], pending_step_);
    at += pending_[use];
  }
  pending_.fill(0);
  pending_begin_ = now_;
}

Timeline::Mark Timeline::mark() const {
  return {.time = to_seconds(now_), .totals = totals_};
}

WallTime Timeline::finish() && {
  flush();
  WallTime wall{.begin = to_seconds(begin_), .end = to_seconds(now_), .slices = std::move(slices_)};
  for (size_t use = 0; use < kTimeUses; ++use) wall.seconds[use] = to_seconds(totals_[use]);
  return wall;
}

}  // namespace megalith::observe
