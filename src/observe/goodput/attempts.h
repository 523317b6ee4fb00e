#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include "observe/logs/run_events.h"

namespace megalith::observe {

// From one start of the job to the next.
struct Attempt {
  size_t begin = 0;  // its events: [begin, end) of RunEvents::events
  size_t end = 0;
  bool worked = false;       // it came as far as loading
  bool logs_steps = false;   // each step is told; else only checkpoints are
  int64_t began = 0;         // microseconds: its first event
  int64_t all_started = 0;   // its last node
  int64_t last_sign = 0;     // its last event before its end was told
  int64_t loaded_step = -1;  // -1: it did not say
  // Steps from here on were lost: a later attempt went on from here.
  int64_t kept_until = std::numeric_limits<int64_t>::max();
  std::optional<RunEvent> ending;     // its first node's end, or the user's stop
  std::optional<RunEvent> in_flight;  // a span that was open when it ended
};

std::vector<Attempt> split_attempts(const RunEvents& log);

// Something that took time, in microseconds since the epoch.
struct Activity {
  RunEventKind kind = RunEventKind::train_step;  // load, loaded (a moment), train_step, validation or save
  int64_t begin = 0;
  int64_t end = 0;
  int64_t step = -1;       // how many were done before it
  int64_t steps = 0;       // how many it did
  double data_wait = 0.0;  // seconds
};

// The activities of an attempt in order. Where the log tells checkpoints only, the time between two of them is one
// activity of many steps.
template <class Use>
void for_each_activity(const RunEvents& log, const Attempt& attempt, const Use& use) {
  int64_t cursor = attempt.all_started;
  int64_t done = -1;
  for (size_t i = attempt.begin; i < attempt.end; ++i) {
    const RunEvent& event = log.events[i];
    if (event.open || event.micros > attempt.last_sign) continue;
    const auto took = static_cast<int64_t>(static_cast<double>(event.seconds) * 1e6);
    Activity activity{.kind = event.kind, .begin = event.micros - took, .end = event.micros, .step = event.step};
    switch (event.kind) {
      case RunEventKind::loaded:
        done = event.step;
        activity.begin = event.micros;
        use(activity);
        break;
      case RunEventKind::train_step:
        activity.steps = 1;
        activity.data_wait = static_cast<double>(event.data_wait);
        use(activity);
        break;
      case RunEventKind::load:
      case RunEventKind::validation:
      case RunEventKind::save:
        use(activity);
        break;
      case RunEventKind::saved:
        if (!attempt.logs_steps && done >= 0) {
          use(Activity{
              .begin = cursor, .end = event.micros, .step = done, .steps = std::max<int64_t>(0, event.step - done)});
        }
        done = std::max(done, event.step);
        break;
      default:
        continue;
    }
    cursor = std::max(cursor, event.micros);
  }
}

// How fast the run usually is, in seconds; 0 where the log does not tell.
struct Pace {
  double step = 0.0;
  double stretch = 0.0;  // between two signs of progress
  double warm_up = 0.0;  // what an attempt's first stretch takes longer than others
  double load = 0.0;
  double validation = 0.0;
  double save = 0.0;
};

Pace pace_of(const RunEvents& log, const std::vector<Attempt>& attempts);

}  // namespace megalith::observe
