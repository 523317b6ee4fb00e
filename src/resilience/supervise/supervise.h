#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "config/run_config.h"

namespace megalith::resilience {

struct LocalSupervision {
  config::Run run;  // effective, for all ranks of the fleet
  int64_t nodes = 1;
  int64_t ranks_per_node = 1;
  int64_t spares = 0;
  std::vector<int64_t> fewer_nodes;       // smaller numbers that the run can go on with, the largest first
  std::filesystem::path nodes_directory;  // empty: nodes/ in the run directory
  // For drills, as MEGALITH_FAILPOINTS has them: of all ranks, and of this supervisor those of its journal.
  std::string failpoints;
};

// Trains with a whole fleet on this machine, nodes being folders, and recovers from what goes wrong. Goes on where a
// supervisor before it has ended. The exit code to answer: 0, 75 after a stop signal, 2, 70 where it gave up, 130 for a
// second SIGINT. User error for what cannot begin.
int supervise_local(const LocalSupervision& supervision);

}  // namespace megalith::resilience
