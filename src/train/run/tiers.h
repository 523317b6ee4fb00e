#pragma once

#include <filesystem>
#include <string>

#include "checkpoint/holdings.h"
#include "config/run_config.h"
#include "core/file.h"

namespace megalith::train {

// Where the checkpoints of a run are kept.
struct Tiers {
  std::filesystem::path persistent;
  std::filesystem::path local;   // empty: none
  std::filesystem::path memory;  // of this run on this machine; empty: none

  // Of what other nodes hold; empty: none.
  std::filesystem::path copies() const;
  // Those on the node itself.
  checkpoint::NodeDirectories on_node() const { return {.memory = memory, .local = local, .copies = copies()}; }

  bool operator==(const Tiers&) const = default;
};

// As the node of this name sees them, which takes the place of "%n" in directories of the local tier and of memory.
Tiers tiers_of(const config::Run& run, const std::string& node);
// The same for the node of a rank, where nodes have no names of their own but are counted.
Tiers tiers_of(const config::Run& run, int rank);

// Makes the directories that `who` writes checkpoints to, and writes to them: "rank-3", as nobody else is called at the
// same time. Why one of them cannot be used, and what to do; empty: all can.
std::string why_not_writable(const Tiers& tiers, const std::string& who);

// Bytes that hold copies of this run's state from an earlier start, or of runs that nobody continues: RunMemory uses
// the former again and removes the latter.
int64_t reusable_memory(const Tiers& tiers);

// The directory in memory while a process of the run lives: its ranks, and where there is one the node's monitor. It
// stays behind, for the run to be started again, until another run of this user opens its own.
class RunMemory {
 public:
  // Throws an I/O error where the directory cannot be made. `is_kept`: a monitor has opened it already, so that nothing
  // is waited for that another process may hold for long.
  explicit RunMemory(const std::filesystem::path& directory, bool is_kept = false);

 private:
  File lock_;
};

}  // namespace megalith::train
