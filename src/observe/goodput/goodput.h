#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "observe/goodput/wall_time.h"
#include "observe/logs/run_events.h"

namespace megalith::observe {

// The numbers of the calculator in Google's resiliency library, counted as it counts: a start or an end that many nodes
// tell in a row counts once; goodput is the steps gained at the reference step time, of all time.
struct Goodput {
  bool has_reference = false;  // a step time to judge by was given
  int64_t events = 0;
  int64_t starts = 0;
  int64_t loads = 0;  // of a step beyond 0
  int64_t saves = 0;
  double runtime_seconds = 0.0;

  // Only where there was a load, a save beyond it, and a reference step time.
  struct Progress {
    int64_t min_loaded_step = 0;
    int64_t max_saved_step = 0;
    double effective_seconds = 0.0;
    int64_t steps() const { return max_saved_step - min_loaded_step; }
  };
  std::optional<Progress> progress;

  double percentage() const {
    return progress && runtime_seconds > 0.0 ? progress->effective_seconds / runtime_seconds * 100.0 : 0.0;
  }
};

Goodput measure_goodput(const RunEvents& log, std::optional<double> reference_step_time);

// The calculator's header and table, byte for byte; without a reference step time it says that it needs one.
std::string goodput_table(const RunEvents& log, const Goodput& goodput);
// The breakdown, in total and per incident (of many, the longest).
std::string wall_time_tables(const WallTime& wall);
// Every slice of the timeline.
std::string slice_table(const WallTime& wall);

// The calculator's export, and behind its keys `wall_time`.
nlohmann::ordered_json goodput_json(const RunEvents& log, const Goodput& goodput, const WallTime& wall);

}  // namespace megalith::observe
