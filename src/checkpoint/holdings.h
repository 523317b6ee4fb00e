#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "checkpoint/lineage.h"
#include "checkpoint/nodes/part_store.h"

namespace megalith::checkpoint {

// Where a node keeps parts. Empty: nowhere.
struct NodeDirectories {
  std::filesystem::path memory;
  std::filesystem::path local;
  std::filesystem::path copies;  // of other nodes' parts
};

// All that is there, of any run, what is in memory first. What is damaged is passed over.
std::vector<HeldPart> parts_on(const NodeDirectories& node);

// Removes, of this run, what the lineage gives up, and says what that was. Memory stays, for the next image.
std::vector<std::string> remove_given_up(const NodeDirectories& node, const std::string& run_id,
                                         const Lineage& lineage);
// Removes all that is there of a run that is over.
void remove_parts(const NodeDirectories& node, const std::string& run_id);

// Which save of all ranks a part belongs to. As text: "20-8-3-<digest of the state>".
struct SaveId {
  int64_t step = 0;
  int64_t ranks = 0;
  int64_t generation = 0;
  std::string state;

  static SaveId of(const Manifest& part);
  // Nothing for what is none.
  static std::optional<SaveId> from_text(std::string_view text);
  std::string to_text() const;
  bool operator==(const SaveId&) const = default;
};

// The parts of one save that a node has in one place, or a checkpoint on the persistent tier.
struct HeldSave {
  enum class Tier { memory, local, copies, persistent };

  int64_t step = 0;
  int64_t generation = 0;
  int64_t ranks = 0;  // that saved together
  Tier tier = Tier::memory;
  std::vector<int64_t> parts;  // rising; on the persistent tier all of them

  bool operator==(const HeldSave&) const = default;
};

// Of this run, the newest first. What a supervisor is told, which chooses a step that all nodes together cover.
std::vector<HeldSave> saves_on(const NodeDirectories& node, const std::string& run_id);
std::vector<HeldSave> saves_in(const std::filesystem::path& persistent, const std::string& run_id);

}  // namespace megalith::checkpoint
