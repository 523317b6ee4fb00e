#pragma once

#include <filesystem>

namespace megalith::observe {

struct WatchOptions {
  std::filesystem::path directory;
  bool once = false;  // one frame, then back; always so where stdout is no terminal
  double interval_seconds = 1.0;
  double stall_seconds = 0.0;  // 0: chosen by the step time
};

// Shows a run until it is complete, or q or Ctrl-C is pressed. A user error where the directory holds no run.
void watch(const WatchOptions& options);

}  // namespace megalith::observe
