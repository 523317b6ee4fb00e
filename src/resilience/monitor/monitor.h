#pragma once

#include "resilience/monitor/node_folders.h"

namespace megalith::resilience {

struct MonitorOptions {
  std::filesystem::path run_directory;
  std::string node;
  std::filesystem::path socket;  // of the supervisor
  std::string address = "127.0.0.1";
  NodeFolders folders;
  std::string failpoints;   // for its ranks
  double stop_grace = 0.0;  // seconds from a stop signal until this machine kills; 0: not known
};

// The monitor of a node, below its anchor (anchor.h): carries out a supervisor's orders, watches its processes, and
// reports. While no supervisor can be heard its ranks train on. Returns the exit code with which a supervisor ended the
// run; 1 at once where another process is this node's monitor.
int run_monitor(const MonitorOptions& options);

}  // namespace megalith::resilience
