#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "resilience/record/control_directory.h"

namespace megalith::resilience {

struct RosterNode {
  std::string node;
  int64_t index = 0;  // 0-based; its ranks are index x ranks_per_node and those that follow
  std::string address;

  bool operator==(const RosterNode&) const = default;
};

struct NodeOut {
  std::string node;
  std::string reason;

  bool operator==(const NodeOut&) const = default;
};

// What is left of the budgets of restarts without progress, as the roster's supervisor counted.
struct RosterBudgets {
  int64_t in_job_restarts = 0;    // used
  int64_t workload_restarts = 0;  // used
  int64_t starts = 0;             // since the last new step, this one counted

  bool operator==(const RosterBudgets&) const = default;
};

// Who trains, with what, from which step: control/roster-000012.json in the run directory. A generation exists when its
// roster does. There is one per generation, created exclusively, and none is ever changed. It holds no secret.
struct Roster {
  static constexpr int64_t kVersion = 1;

  std::string run;
  int64_t term = 0;  // of the supervisor that made it
  int64_t generation = 0;
  int64_t world_size = 0;
  int64_t ranks_per_node = 0;
  std::vector<RosterNode> nodes;       // by index
  std::vector<std::string> spares;     // nodes that were there and have no ranks
  std::vector<NodeOut> out;            // nodes that may not take part
  std::string config;                  // YAML, as a user writes it
  std::vector<std::string> overrides;  // key=value
  int64_t from_step =
      -1;              // step whose checkpoint it continues from, newer ones are set aside; -1: none, from the start
  std::string reason;  // why it was made
  RosterBudgets budgets;
  std::string store_node;  // serves the store, on a port of its own choice; orders tell which

  const RosterNode* node(std::string_view name) const;  // null: has no ranks
  const RosterNode& node_of(int64_t rank) const { return nodes[static_cast<size_t>(rank / ranks_per_node)]; }
  bool operator==(const Roster&) const = default;
};

// JSON with its own digest as its last field.
std::string to_text(const Roster& roster);
std::string digest_of(const Roster& roster);
// Data error that begins with `where` for what is torn, damaged, inconsistent or of a newer version.
Roster parse_roster(std::string_view text, const std::string& where);

enum class Claim {
  taken,     // it is there, as a second look at it says
  conflict,  // this generation has another roster
};
// I/O error where the directory cannot be written: then it is not known whether the roster is there.
Claim claim_roster(ControlDirectory& directory, const Roster& roster);

std::string roster_file_name(int64_t generation);  // roster-000012.json
// 0: there is none. By the names alone.
int64_t newest_generation(const ControlDirectory& directory);
// Nothing where there is none. Data error by name for one that is damaged or belongs to another run.
std::optional<Roster> read_newest_roster(const ControlDirectory& directory, const std::string& run);

}  // namespace megalith::resilience
