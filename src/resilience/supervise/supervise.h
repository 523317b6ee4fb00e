#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "config/run_config.h"
#include "resilience/secure/endpoint.h"

namespace megalith::resilience {

struct Supervision {
  config::Run run;                   // effective, for all ranks of the fleet
  std::vector<int64_t> fewer_nodes;  // smaller numbers that it can go on with, the largest first
  // A fleet of folders on this machine:
  int64_t nodes = 1;
  int64_t ranks_per_node = 1;
  int64_t spares = 0;
  std::filesystem::path nodes_directory;  // empty: nodes/ in the run directory
  // Or machines whose monitors dial this one; the nodes are then those of `run`, and whoever comes beside is a spare:
  std::optional<Endpoint> listen;
  std::filesystem::path credentials;  // a supervisor's
  // For drills, as MEGALITH_FAILPOINTS has them: of all ranks, and of this supervisor those of its journal.
  std::string failpoints;
};

// Trains with a fleet and recovers from what goes wrong. Goes on where a supervisor before it has ended. The exit code
// to answer: 0, 75 after a stop signal, 2, 70 where it gave up, 130 for a second SIGINT (other machines then train on).
// User error for what cannot begin.
int supervise(const Supervision& supervision);

}  // namespace megalith::resilience
