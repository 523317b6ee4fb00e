#pragma once

#include <filesystem>
#include <memory>

#include "checkpoint/loaded.h"
#include "engine/engine.h"
#include "train/state/state_snapshot.h"

namespace megalith::train {

// What a rank trains, on its way into checkpoints and out of them. The engine must outlive it.
class RankState {
 public:
  explicit RankState(engine::Engine& engine) : engine_(engine) {}
  ~RankState() { engine_.set_update_barrier(nullptr); }
  RankState(const RankState&) = delete;
  RankState& operator=(const RankState&) = delete;

  // Fills weights, and where there is training optimizer state, from a checkpoint of any layout.
  void restore(checkpoint::Loaded& checkpoint);
  // Weights alone; the optimizer begins anew.
  void restore_weights(checkpoint::Loaded& checkpoint);

  // Host memory for what this rank gives to a checkpoint (StateSnapshot::Parts::memory_file). To be called once.
  void prepare_snapshots(const std::filesystem::path& memory_file = {});
  // Copies everything as it is after the last step, while the next one runs; its update waits for the copies.
  void take_snapshot() { snapshot_->take(engine_.stream()); }
  StateSnapshot& snapshot() { return *snapshot_; }

 private:
  engine::Engine& engine_;
  std::unique_ptr<StateSnapshot> snapshot_;
};

}  // namespace megalith::train
