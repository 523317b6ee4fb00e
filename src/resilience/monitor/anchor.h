#pragma once

#include <string>
#include <vector>

#include "resilience/monitor/node_folders.h"

namespace megalith::resilience {

struct AnchorOptions {
  NodeFolders folders;
  std::string node;
  std::vector<std::string> worker;  // the command
};

// The parent of a node's monitor, so small that nothing in it can fail: no threads and no network. It starts the
// monitor again when that dies, is the parent of ranks that lost theirs and writes down how they ended, and passes stop
// signals on. Takes over a monitor that an anchor before it has left. Returns the exit code of the monitor that was
// done; user error where the node has an anchor.
int run_anchor(const AnchorOptions& options);

// For the monitor: done, with this exit code; its anchor need not start it again.
void write_verdict(const NodeFolders& folders, int64_t exit_code);

}  // namespace megalith::resilience
