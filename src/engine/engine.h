#pragma once

#include <array>
#include <memory>
#include <optional>

#include "comm/world.h"
#include "data/batch.h"
#include "engine/action_times.h"
#include "engine/arenas.h"
#include "engine/micro_batches.h"
#include "engine/rank_spread.h"
#include "engine/rank_talk.h"
#include "engine/stage.h"
#include "engine/step_scales.h"
#include "optim/optimizer.h"
#include "parallel/groups.h"
#include "parallel/replica_sync.h"

namespace megalith::engine {

struct EngineOptions {
  StageRequest stage;
  uint64_t seed = 0;  // of dropout
  bool deterministic = true;
  bool records_graphs = true;  // on a GPU
  optim::OptimizerOptions optimizer = {};
  double deadline = 600.0;  // seconds for the ranks of a call to arrive
};

// What a rank asks all to do after a step: they hear of it with its result.
struct StepRequests {
  bool stop = false;  // the run
  bool save = false;
};

struct StepOrder {
  int64_t step = 0;
  double weight = 0.0;  // of the targets of this data-parallel rank's samples
  double learning_rate = 0.0;
  StepRequests requests = {};
};

struct UpdateResult {
  double gradient_norm = 0.0;
  bool skipped = false;  // a gradient was not finite: nothing was changed
  // Where: "the gradient of layers.3.mlp.up.weight", or an fp8 operand; empty where another rank found it.
  std::string first_non_finite;
  std::string parameter;  // where it is a gradient: whose
};

// What a step did, on all ranks.
struct StepResult {
  double loss = 0.0;  // mean over the weighted tokens
  double backward_seconds = 0.0;
  // In which this rank waited for others. Nothing for a rank alone; on a GPU it is measured every few steps.
  std::optional<double> wait_seconds;
  std::optional<RankSpread> spread;  // of the last step measured before this one
  UpdateResult update;
  bool stop_requested = false;  // some rank asked for it in its order
  bool save_requested = false;  // the same
  // fp8 operands that were beyond the largest number of their type: how many on all ranks, and the names of those of
  // this one.
  int64_t saturations = 0;
  std::vector<std::string> saturated;
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
  // `world` must outlive the engine. `sizes`: what a rehearsal of this rank has found.
  Engine(const EngineOptions& options, comm::World& world, const ArenaSizes& sizes);
  // A shadow, without memory, that computes nothing: it tells sizes() and what observers of its stream and world heard.
  Engine(const EngineOptions& options, comm::World& world, const StagePrograms& programs);
  ~Engine();

  void initialise(uint64_t seed);

  // Every operation of a step, and of evaluation on a shadow, on micro batches like `example`, without other stages.
  void rehearse(const data::MicroBatch& example);
  // Tunes every operation of training on micro batches like `example`, by timing where no choice is known; all ranks
  // then use the same ones. Weights and optimizer state stay as they are. Nothing to do on the CPU.
  void tune(const data::MicroBatch& example);

  // One step, on as many micro batches as the request or its ramp has.
  void run_step(const StepOrder& order, const MicroBatches& micro_batches);
  // What the step ended last did, or the one before where `steps_back` is 1. Waits until it is done.
  StepResult result_of_step(int steps_back);
  // Whether run_step() returns before the step is done.
  bool runs_ahead() const { return stream_.device() == Device::cuda; }

  // Over all ranks. `weight` as in StepOrder; as many micro batches as a step has.
  EvaluationSum evaluate(const MicroBatches& micro_batches, double weight);

  // Recorded work shows no single operation to a profiler.
  void set_recording(bool on) { stage_->set_recording(on && options_.records_graphs); }
  // Where the times of each step's actions are kept, those of the last step last; null: nowhere. It must outlive them.
  void set_action_times(ActionTimes* times) { action_times_ = times; }
  // No update before this point is passed: something still reads the state. Null: nothing does. It must outlive the
  // steps that follow.
  void set_update_barrier(const StreamMark* mark) { update_barrier_ = mark; }

  const EngineOptions& options() const { return options_; }
  // Where this rank stands.
  const parallel::Coordinates& place() const { return place_; }
  const parallel::Groups& groups() const { return groups_; }
  const parallel::ParameterTable& table() const { return table_; }
  const parallel::ParameterStore& parameters() const { return store_; }
  const model::Precision& precision() const { return precision_; }
  // Whether this rank is the one of its stage that gives the scales' histories to a checkpoint.
  bool keeps_scales() const { return place_.tp == 0 && replica() == 0; }
  // The next step measures first. Otherwise the histories in precision() have been filled since:
  void forget_scales();
  void take_scales_from_history();
  // Null where nothing is trained.
  optim::Optimizer* optimizer() const { return optimizer_.get(); }
  const StageProgram& program() const { return program_; }
  const Arenas& arenas() const { return arenas_; }
  // What was needed so far.
  ArenaSizes sizes() const;
  // Bytes that libraries take beside the arenas and that the GPU held before, as tune() has seen them.
  std::optional<int64_t> bytes_outside() const { return bytes_outside_; }
  RankTalk& talk() { return *talk_; }
  Stream& stream() { return stream_; }

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

  // Numbers of a step in the memory of the device. Those before `weight` are summed over all ranks.
  struct StepSums {
    double squared_norm = 0.0;
    double loss = 0.0;
    double evaluated_weight = 0.0;
    double stop_requests = 0.0;
    double save_requests = 0.0;
    double saturations = 0.0;
    double weight = 0.0;  // of all targets of the step
    RankTimes times;
  };
  static constexpr int64_t kSums = sizeof(StepSums) / sizeof(double);
  struct StepTelling {
    ops::UpdateScalars update;
    StepSums sums;
  };

  Engine(const EngineOptions& options, comm::World& world, const StagePrograms& programs, const ArenaSizes* sizes);

  // How often a step's passes run only to measure scales: where some rank has no history for delayed scaling.
  static constexpr int kMeasurements = 2;
  int needed_measurements();
  // After such passes, with so many left before: how many are left now; none where an operand was not finite.
  int measure_scales(int left);
  // What the amax of all ranks say; one that is not finite makes the squared norm of the gradients NaN.
  void inspect_scales();
  void begin_step(const StepOrder& order);
  void end_step(const StepOrder& order);
  Tensor sum(double StepSums::*which) const;
  void set_sum(double StepSums::*which, double value);
  // Sums over all ranks what this one adds to each.
  void sum_over_ranks(const StepRequests& requests, double evaluated_weight);
  void compare_ranks();
  void share_tuning();

  bool is_alone() const { return groups_.world->is_alone(); }
  // Among those that hold the same weights.
  int64_t replica() const;
  // Of the ranks with the same losses, one counts.
  bool tells_losses() const;

  StepSlot& current_slot() { return slots_[steps_ended_ % kSlots]; }

  EngineOptions options_;
  StatusPage& page_;
  parallel::Coordinates place_;
  parallel::Groups groups_;
  std::unique_ptr<ThreadPool> pool_;  // null: a shadow
  Stream stream_;
  parallel::ParameterTable table_;
  parallel::Placement placement_;
  StageProgram program_;
  Arenas arenas_;
  parallel::ParameterStore store_;
  model::Precision precision_;
  StepScales scales_;
  std::unique_ptr<parallel::ReplicaSync> sync_;  // absent, like the optimizer, where nothing is trained
  std::unique_ptr<optim::Optimizer> optimizer_;
  ops::StepScalars* scalars_ = nullptr;
  StepSums* sums_ = nullptr;
  std::unique_ptr<RankTalk> talk_;
  std::unique_ptr<Stage> stage_;

  std::array<StepSlot, kSlots> slots_;
  size_t steps_ended_ = 0;
  const StreamMark* update_barrier_ = nullptr;
  ActionTimes* action_times_ = nullptr;
  std::optional<int64_t> bytes_outside_;
  bool scales_are_known_ = false;    // on this rank
  bool scales_are_settled_ = false;  // on all ranks
  double own_seconds_ = 0.0;         // that this rank worked in the last step whose waits were timed; 0: none yet
};

}  // namespace megalith::engine
