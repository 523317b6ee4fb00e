#pragma once

#include <optional>

#include "checkpoint/saver.h"
#include "comm/world.h"
#include "core/telemetry.h"
#include "engine/rank_talk.h"
#include "train/run/run_identity.h"
#include "train/run/tiers.h"
#include "train/state/rank_state.h"

namespace megalith::train {

// Saves what the ranks train, when it is due, while training goes on. Every rank makes the same calls.
class CheckpointWriter {
 public:
  struct Options {
    const config::Run& run;
    Tiers tiers;
    RunIdentity identity;
    RankState& state;
    engine::RankTalk& talk;
    comm::World& world;
    checkpoint::Peers* peers = nullptr;  // null: there is one node
    std::optional<int64_t> loaded_step;  // that the run goes on from
    checkpoint::Fence fence = {};        // of the persistent tier
  };
  explicit CheckpointWriter(const Options& options);

  // After `step` steps, on some tier.
  bool is_due(int64_t step) const;
  // By the clock of rank 0, on the persistent tier; never on other ranks, which must hear of it.
  bool is_late() const;
  std::filesystem::path path_of(int64_t step) const { return store_.directory_of(step); }

  // Takes a snapshot of the state, in which the last step must be done, and begins to write it. Where the save before
  // is still under way it waits for that one, or does nothing, as the config says. `late`: rank 0 said so.
  void save(const checkpoint::RunState& state, bool late, Telemetry& telemetry);
  // The state must be on the persistent tier when this returns; else an I/O error.
  void save_at_end(const checkpoint::RunState& state, Telemetry& telemetry);
  // Tells of a save that has ended.
  void report(Telemetry& telemetry);

 private:
  void open_memory(const Options& options);
  std::optional<checkpoint::PeerCopies> peer_copies(const Options& options, const checkpoint::Part& place) const;
  // False: a save that is late is left out.
  bool make_way(bool may_skip, Telemetry& telemetry);
  // Memory for snapshots. False where some rank has none: then nothing is saved.
  bool prepare();
  bool wants_two_images() const { return images_ && options_.local_every_n_train_steps > 0; }
  // Empty, or why there is none for so many bytes of each rank here in the image of this number.
  std::string why_no_room(int64_t image, int64_t bytes) const;
  void open_second_image();
  // Of turns_, that which does not hold what a restart would need.
  size_t next_turn() const;
  void begin(const checkpoint::RunState& state, bool to_persistent, bool to_local);
  bool persistent_due(int64_t step) const;
  // Whether a step that this process has not trained beyond is on the persistent tier.
  bool is_there_already(int64_t step) const;
  void take_outcome(Telemetry& telemetry);
  void say_failure();
  bool local_due(int64_t step) const;

  const config::CheckpointCallback& options_;
  checkpoint::Store store_;  // to look at; the saver writes
  double time_interval_;     // seconds; 0: none
  double last_save_;         // when the last one began, or this
  std::string run_id_;
  RankState& state_;
  engine::RankTalk& talk_;
  std::optional<RunMemory> memory_;
  std::optional<checkpoint::MemoryParts> images_;  // where the images lie that outlive this process
  // Those that snapshots take by turns, by their numbers in memory, and of each number the step that it holds.
  std::vector<int64_t> turns_;
  std::vector<int64_t> image_steps_;
  bool second_was_tried_ = false;
  bool is_prepared_ = false;
  std::optional<checkpoint::Saver> saver_;
  int rank_;
  int64_t ranks_per_node_;
  bool is_first_;
  int64_t begun_step_ = -1;  // of the last save
  bool begun_persistent_ = false;
  std::string failure_;         // of the last save that has ended, on this rank; empty: none
  std::string unsaid_;          // the same for the log, until it is told
  int64_t complete_step_ = -1;  // the last that no rank failed in
  int64_t loaded_step_;         // that the run went on from; -1: none
  int64_t protected_step_;      // the same as complete_step_, or before it the one that was loaded; -1: none
};

}  // namespace megalith::train
