#pragma once

#include <filesystem>

namespace megalith::observe {

struct WatchOptions {
  std::filesystem::path directory;
  bool once = false;  // one frame of what is there, then back; where stdout is no terminal one frame is all there is
  double interval_seconds = 1.0;
  double stall_seconds = 0.0;  // 0: chosen by the step time
};

// Shows a run until it is complete, or q or Ctrl-C is pressed; waits for it where it has not begun, unless `once`. A
// user error where the directory holds something else.
void watch(const WatchOptions& options);

}  // namespace megalith::observe
