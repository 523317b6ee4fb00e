#pragma once

#include <string>
#include <vector>

#include "observe/logs/run_history.h"

namespace megalith::observe {

struct WatchView {
  int width = 80;
  int height = 24;
  double now = 0.0;            // seconds since the epoch
  double stall_seconds = 0.0;  // without a line that make a run count as stalled; 0: chosen by its step time
  bool colour = false;
};

enum class WatchState { starting, running, stalled, ended_early, complete };

WatchState watch_state(const RunHistory& history, const WatchView& view);

// Seconds until the last step, at the pace of the newest steps, saving and validation included.
std::optional<double> seconds_left(const RunHistory& history);

// What a run looks like now, in lines that fit the view: as many as its height, or fewer.
std::vector<std::string> watch_frame(const std::string& name, const RunHistory& history, const WatchView& view);

}  // namespace megalith::observe
