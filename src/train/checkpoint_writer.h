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
  CheckpointWriter(const config::Run& run, const Tiers& tiers, const RunIdentity& identity, Engine& engine,
                   comm::World* world);

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
  // False: a save that is late is left out.
  bool make_way(bool may_skip, Telemetry& telemetry);
  // Memory for snapshots. False where some rank has none: then nothing is saved.
  bool prepare();
  void begin(const checkpoint::RunState& state, bool to_persistent);
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
};

}  // namespace megalith::train
