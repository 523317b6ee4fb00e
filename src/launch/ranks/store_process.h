#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "core/process/launcher_line.h"

namespace megalith::launch {

// The store of one generation of a run as a process of its own, so that any rank may die: `megalith serve-store`, which
// inherits a line to its starter (MEGALITH_LAUNCHER_FD).
struct StoreRequest {
  int64_t generation = 0;
  int ranks = 1;                      // that will come
  std::string address = "127.0.0.1";  // to listen at
};

// The starter: after the secret of the run, and then for the port at which it serves. Nothing where it has not said so
// in time.
void ask_for_store(const LauncherLine& line, const StoreRequest& request);
std::optional<int> port_of_store(LauncherLine& line, double seconds);

struct StorePatience {
  double left = 5.0;     // seconds that it stays when the last rank has left
  double lonely = 60.0;  // and when its starter is gone and no rank has come
};

// The process itself. Returns when any word comes by the line, and when it has nobody left to serve; that its starter
// is gone is no reason while there are ranks. Stop signals mean nothing to it.
void serve_store(LauncherLine line, const StorePatience& patience = {});
// With the line that this process has inherited.
void serve_store();

}  // namespace megalith::launch
