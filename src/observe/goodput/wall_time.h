#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "observe/logs/run_events.h"

namespace megalith::observe {

// What a second of a run's wall time went into. Exclusive: each second has one use; exhaustive: the uses add up to the
// whole. docs/metrics.md says by which rules a log is read.
enum class TimeUse {
  productive,       // steps that were kept, at the reference step time
  slowdown,         // what kept steps took beyond it
  wasted_steps,     // steps that were computed and lost, or computed again
  checkpoint_save,  // training stood still for it
  checkpoint_load,
  validation,
  detection,  // from the last sign of life to the job's end, or until the supervisor noticed, beyond what was in flight
  decision,   // of the supervisor: which faults belong together, and what to do
  teardown,   // until no process of the ranks was left
  node_check,
  waiting,       // for nodes, and for what they hold
  restart,       // from there to the start of its last node, failed starts included
  start_up,      // from the start to the first step, and what that one takes longer than the others
  data_wait,     // what kept steps took longer because they waited for data
  planned_stop,  // somebody asked the job to stop, until it was started again
  unknown,
};
constexpr size_t kTimeUses = static_cast<size_t>(TimeUse::unknown) + 1;

// "wasted_steps"
std::string_view name_of(TimeUse use);
// "wasted steps"
std::string_view label_of(TimeUse use);

// Told by journals alone; a run without a supervisor has none.
constexpr bool is_of_supervisor(TimeUse use) {
  return use >= TimeUse::decision && use <= TimeUse::waiting;
}

// Seconds by TimeUse.
using UseSeconds = std::array<double, kTimeUses>;

// A stretch of the timeline. Neighbouring steps share slices, sorted by use within a two-thousandth of the run.
struct TimeSlice {
  TimeUse use = TimeUse::unknown;
  double begin = 0.0;  // seconds since the epoch
  double end = 0.0;
  int64_t step = -1;  // the first step it belongs to; -1: none
};

// One end of the job and what it cost: from the last moment whose work was kept until steps ran at their usual pace
// again. Incidents do not overlap.
struct Incident {
  double begin = 0.0;
  double end = 0.0;
  std::string reason;
  int64_t last_step = -1;     // how many steps were done when it happened, as far as the log tells
  int64_t resumed_step = -1;  // how many were left after it; -1: it was never resumed
  UseSeconds seconds{};
};

struct WallTime {
  double begin = 0.0;
  double end = 0.0;
  UseSeconds seconds{};           // adds up to end - begin
  std::vector<TimeSlice> slices;  // in order, without gaps
  std::vector<Incident> incidents;
  int64_t kept_steps = 0;
  double reference_step_time = 0.0;  // 0: there was none, and no step to take it from

  double total() const { return end - begin; }
  double seconds_of(TimeUse use) const { return seconds[static_cast<size_t>(use)]; }
  // Time-based goodput: productive seconds of all seconds, 0 to 1.
  double productive_fraction() const { return total() > 0.0 ? seconds_of(TimeUse::productive) / total() : 0.0; }
};

// `reference_step_time` in seconds; without it the median of the run's own steps. No events give an empty WallTime.
WallTime explain_wall_time(const RunEvents& log, std::optional<double> reference_step_time = std::nullopt);

}  // namespace megalith::observe
