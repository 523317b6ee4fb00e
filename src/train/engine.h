#pragma once

#include <array>
#include <memory>
#include <optional>
#include <vector>

#include "checkpoint/loaded.h"
#include "comm/world.h"
#include "config/run_config.h"
#include "cost/memory.h"
#include "data/batch.h"
#include "model/memory_plan.h"
#include "ops/plans.h"
#include "optim/optimizer.h"
#include "parallel/groups.h"
#include "parallel/replica_sync.h"
#include "train/rank_spread.h"
#include "train/stage.h"
#include "train/state_snapshot.h"

namespace megalith::train {

// The arenas of one rank, sized by the memory table before anything is computed.
struct Arenas {
  Arenas(Device device, const cost::MemoryTable& table, bool training);

  int64_t bytes() const;

  Arena weights;
  Arena gradients;
  Arena masters;
  Arena moments;
  Arena optimizer;
  Arena activations;
  Arena reduction;
  Arena scratch;
  Arena batch;
};

struct EngineOptions {
  model::StageRequest stage;
  uint64_t seed = 0;  // of dropout
  bool deterministic = true;
  bool records_graphs = true;  // on a GPU
  optim::OptimizerOptions optimizer = {};
  double deadline = 600.0;  // seconds for the ranks of a call to arrive
};

struct UpdateResult {
  double gradient_norm = 0.0;
  bool skipped = false;          // a gradient was not finite: nothing was changed
  std::string first_non_finite;  // the parameter it was found in; empty where another rank found it
};

// What a step did, on all ranks.
struct StepResult {
  double loss = 0.0;  // mean over the weighted tokens
  double backward_seconds = 0.0;
  // In which this rank waited for others. Nothing for a rank alone; on a GPU it is measured every few steps.
  std::optional<double> wait_seconds;
  std::optional<RankSpread> spread;  // of the last step measured before this one
  UpdateResult update;
  bool stop_requested = false;  // some rank asked for it in end_step()
};

struct EvaluationSum {
  double loss = 0.0;    // weighted
  double weight = 0.0;  // of the targets
};

// What one rank computes with: memory, its part of the model, optimizer, and the ranks it works with. It knows nothing
// of files, steps to come or who watches. On a GPU its calls ask and do not wait; only result_of_step() and evaluate()
// do. All ranks make the same calls.
class Engine {
 public:
  // `world` is null for a rank alone, and must outlive the engine.
  explicit Engine(const EngineOptions& options, comm::World* world = nullptr);
  ~Engine();

  void initialise(uint64_t seed);

  // Makes every plan that training on micro batches like `example` needs, by timing where none is known; all ranks then
  // use the same ones. Weights and optimizer state stay as they are. Nothing to do on the CPU.
  void make_plans(const data::MicroBatch& example);

  // One step: begin, every action of program() in order, end. `weight` is that of the targets of this data-parallel
  // rank's samples; `update` counts updates from 1.
  void begin_step(int64_t step, double weight);
  const parallel::StepProgram& program() const { return plan_.training; }
  void act(size_t action, const std::vector<data::MicroBatch>& micro_batches);
  void end_step(double learning_rate, int64_t update, bool requests_stop = false);
  // What the step ended last did, or the one before where `steps_back` is 1. Waits until it is done.
  StepResult result_of_step(int steps_back);
  // Whether end_step() returns before the step is done.
  bool runs_ahead() const { return stream_.device() == Device::cuda; }

  // Over all ranks. `weight` as in begin_step(); as many micro batches as a step has.
  EvaluationSum evaluate(const std::vector<data::MicroBatch>& micro_batches, double weight);

  // Recorded work shows no single operation to a profiler.
  void set_recording(bool on) { stage_->set_recording(on && options_.records_graphs); }

  // The memory table, with what libraries were seen to take outside the arenas once plans are made.
  const cost::MemoryTable& memory() const { return memory_; }
  const Arenas& arenas() const { return arenas_; }
  // All of the activations' arena as one tensor, for benches.
  Tensor scratch_memory() const;
  const parallel::ParameterStore& parameters() const { return store_; }
  const parallel::Groups& groups() const { return groups_; }
  const EngineOptions& options() const { return options_; }
  // Where this rank stands.
  const parallel::Coordinates& place() const { return place_; }
  Stream& stream() { return stream_; }

  // What rank 0 says, on every rank. The host waits.
  std::string tell_all(const std::string& of_first);
  // Whether this is so on some rank. The host waits.
  bool is_so_somewhere(bool here);
  // The same for many questions.
  std::vector<bool> union_over_ranks(const std::vector<bool>& here);

  // Host memory for what this rank gives to a checkpoint (StateSnapshot::Parts::memory_file). To be called once.
  void prepare_snapshots(const std::filesystem::path& memory_file = {});
  // Copies everything as it is after the last step, while the next one runs; its update waits for the copies.
  void take_snapshot() { snapshot_->take(stream_); }
  StateSnapshot& snapshot() { return *snapshot_; }
  // Fills weights, and where there is training optimizer state, from a checkpoint of any layout.
  void restore(checkpoint::Loaded& checkpoint);
  // Weights alone; the optimizer begins anew.
  void restore_weights(checkpoint::Loaded& checkpoint);

 private:
  // What the device tells of a step, copied to the host when the step ends.
  struct StepSlot {
    std::unique_ptr<StagingMemory> memory;
    StreamMark begun;
    StreamMark done;
    StreamTimes backwards;
    StreamTimes waits;
    bool times_waits = false;
    bool tells_spread = false;
  };
  static constexpr size_t kSlots = 2;

  // Sums over ranks and what else a step tells, in the memory of the device.
  struct StepSums {
    double squared_norm = 0.0;
    double loss = 0.0;
    double stop_requests = 0.0;
    double weight = 0.0;  // of all targets of the step
    RankTimes times;
  };
  static constexpr int64_t kSums = sizeof(StepSums) / sizeof(double);
  struct StepTelling {
    ops::UpdateScalars update;
    StepSums sums;
  };
  Tensor sum(double StepSums::*which) const;
  Tensor rank_sums() const;
  void copy_own_sums(bool requests_stop);
  void compare_ranks();
  void share_plans();

  // Among those that hold the same weights.
  int64_t replica() const;
  // Of the ranks with the same losses, one counts.
  bool tells_losses() const;

  StepSlot& current_slot() { return slots_[steps_ended_ % kSlots]; }

  EngineOptions options_;
  parallel::Coordinates place_;
  parallel::Groups groups_;
  ThreadPool pool_;
  Stream stream_;
  int64_t used_before_;  // bytes of the GPU that were in use before the arenas
  parallel::ParameterTable table_;
  parallel::Placement placement_;
  model::StagePlan plan_;
  cost::MemoryTable memory_;
  Arenas arenas_;
  parallel::ParameterStore store_;
  std::unique_ptr<parallel::ReplicaSync> sync_;  // absent, like the optimizer, where nothing is trained
  std::unique_ptr<optim::Optimizer> optimizer_;
  ops::StepScalars* scalars_ = nullptr;
  StepSums* sums_ = nullptr;
  std::unique_ptr<Stage> stage_;

  std::array<StepSlot, kSlots> slots_;
  size_t steps_ended_ = 0;
  std::unique_ptr<StateSnapshot> snapshot_;
  double own_seconds_ = 0.0;  // that this rank worked in the last step whose waits were timed; 0: none yet
};

}  // namespace megalith::train
