#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "config/environment/environment.h"

namespace megalith::config {

// From which step a generation of a run under a supervisor went on.
struct GenerationStart {
  static constexpr int64_t kAnew = -1;

  int64_t generation = 0;
  int64_t from_step = kAnew;

  bool operator==(const GenerationStart&) const = default;
};

// What a monitor tells the ranks that it starts, beside their RankEnvironment (docs/resilience.md).
struct FleetEnvironment {
  std::string run_id;  // MEGALITH_RUN
  std::string node;    // MEGALITH_NODE: this node's own name, whichever ranks it has
  // MEGALITH_LINEAGE, "1:none,2:20": of every roster so far. The last one is this generation's, MEGALITH_GENERATION.
  std::vector<GenerationStart> generations;
  // MEGALITH_HOLDERS_FILE: nodes that others may read from (checkpoint/nodes/remote_holders.h). Empty: none.
  std::filesystem::path holders_file;

  int64_t generation() const { return generations.back().generation; }
  bool operator==(const FleetEnvironment&) const = default;
};

// Nothing where there is no MEGALITH_NODE: no monitor has started this process. User error, with the variable's name,
// for what is missing or makes no sense.
std::optional<FleetEnvironment> fleet_environment(const Lookup& lookup = process_environment);

// "NAME=value", from which fleet_environment() reads the same.
std::vector<std::string> variables_of(const FleetEnvironment& fleet);

// Letters, digits, '-', '_' and '.', at most 64, none in front that hides a file: it becomes part of paths.
bool is_node_name(std::string_view name);

}  // namespace megalith::config
