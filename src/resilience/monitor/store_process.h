#pragma once

#include "resilience/monitor/node_processes.h"

namespace megalith::resilience {

struct StoreProcess {
  int64_t generation = 0;
  int64_t ranks = 0;
  std::string address;  // at which it listens
  NodeFolders folders;
};

// The store at which the ranks of a generation meet, as a process of its own, which outlives every rank and the
// monitor. Starts it, waits until it listens, and says where; the same again for one that runs. I/O error where it has
// ended.
Place serve_store_of(const StoreProcess& store, NodeProcesses& processes);

}  // namespace megalith::resilience
