#pragma once

#include <vector>

#include "resilience/monitor/node_folders.h"
#include "resilience/secure/endpoint.h"

namespace megalith::resilience {

struct MonitorOptions {
  std::filesystem::path run_directory;
  std::string node;
  std::filesystem::path socket;       // of the supervisor of this machine; empty: over TCP
  std::vector<Endpoint> supervisors;  // all that the run has
  std::filesystem::path credentials;  // a monitor's, for TCP
  std::string address;
  NodeFolders folders;
  std::string failpoints;   // for its ranks
  double stop_grace = 0.0;  // seconds from a stop signal until this machine kills; 0: not known
};

// The monitor of a node, below its anchor (anchor.h): carries out a supervisor's orders, watches its processes, and
// reports. While no supervisor can be heard its ranks train on. Returns the exit code with which a supervisor ended the
// run; 1 at once where another process is this node's monitor.
int run_monitor(const MonitorOptions& options);

}  // namespace megalith::resilience
