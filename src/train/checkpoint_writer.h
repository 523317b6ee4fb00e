#pragma once

#include <optional>

#include "checkpoint/saver.h"
#include "comm/world.h"
#include "core/telemetry.h"
#include "train/engine.h"
#include "train/run_identity.h"
#include "train/tiers.h"

namespace megalith::train {

// Saves what the engine holds, when it is due, while training goes on. Every rank makes the same calls.
class CheckpointWriter {
 public:
  struct Options {
    const config::Run& run;
    Tiers tiers;
    RunIdentity identity;
    Engine& engine;
    comm::World* world = nullptr;        // null: one rank
    checkpoint::Peers* peers = nullptr;  // null: there is one node
    std::optional<int64_t> loaded_step;  // that the run goes on from
  };
  explicit CheckpointWriter(const Options& options);

  // After `step` steps, on some tier.
  bool is_due(int64_t step) const;

  // Takes a snapshot of the engine, in which the last step must be done, and begins to write it. Where the save before
  // is still under way it waits for that one, or does nothing, as the config says.
  void save(const checkpoint::RunState& state, Telemetry& telemetry);
  // The state must be on the persistent tier when this returns; else an I/O error.
  void save_at_end(const checkpoint::RunState& state, Telemetry& telemetry);
  // Tells of a save that has ended.
  void report(Telemetry& telemetry);

 private:
  void open_memory(const Tiers& tiers, int64_t rank);
  std::optional<checkpoint::PeerCopies> peer_copies(const Options& options, const checkpoint::Part& place) const;
  // False: a save that is late is left out.
  bool make_way(bool may_skip, Telemetry& telemetry);
  // Memory for snapshots. False where some rank has none: then nothing is saved.
  bool prepare();
  void begin(const checkpoint::RunState& state, bool to_persistent, bool to_local);
  bool persistent_due(int64_t step) const;
  bool local_due(int64_t step) const;

  const config::CheckpointCallback& options_;
  Engine& engine_;
  std::optional<RunMemory> memory_;
  std::filesystem::path memory_file_;
  bool is_prepared_ = false;
  std::optional<checkpoint::Saver> saver_;
  bool is_first_;
  int64_t begun_step_ = -1;  // of the last save
  bool begun_persistent_ = false;
  bool failed_ = false;         // the last save that has ended, on this rank
  int64_t complete_step_ = -1;  // the last that no rank failed in
  int64_t protected_step_;      // the same, or before it the one that was loaded; -1: none
};

}  // namespace megalith::train
