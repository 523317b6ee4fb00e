#pragma once

#include <array>
#include <vector>

#include "data/batch.h"
#include "engine/batch_buffers.h"
#include "engine/micro_batches.h"
#include "engine/stage_program.h"
#include "model/chunk.h"
#include "ops/step_scalars.h"
#include "parallel/groups.h"
#include "parallel/replica_sync.h"

namespace megalith::engine {

struct StageParts {
  const StageProgram& program;
  const parallel::Layout& layout;
  const parallel::ParameterStore& store;
  const model::Precision& precision;
  const parallel::Groups& groups;
  parallel::ReplicaSync* sync = nullptr;  // null where nothing is trained
  Stream& stream;
  Arena& activations;
  Arena& scratch;
  Arena& batch;
  std::vector<int64_t> deferred_bytes = {};  // of each slot, by chunk; empty on a shadow, and where nothing is deferred
  parallel::ContextSplit split = {};
  const ops::StepScalars* scalars = nullptr;  // in the memory of the device
  uint64_t seed = 0;                          // of dropout
  bool deterministic = true;
};

// An action of a step program, and whether it is part of training or of evaluation.
struct ProgramStep {
  const parallel::StepProgram& program;
  size_t index = 0;
  bool training = true;

  const parallel::Action& action() const { return program.schedule[index]; }
  const parallel::Operands& operands() const { return program.operands[index]; }
};

// This rank's chunks of the model with the memory they work in: carries out the actions of a program. All that it is
// given must outlive it.
class Stage {
 public:
  explicit Stage(const StageParts& parts);

  // Of each action first: what it waits for, and the samples that it needs on the device.
  void prepare(const ProgramStep& step, const MicroBatches& micro_batches);
  // Then the action itself: one that computes, or any other.
  void compute(const ProgramStep& step);
  void communicate(const ProgramStep& step);
  // Where one that computes is recorded; null: nowhere.
  RecordedWork* recorded(const ProgramStep& step);
  // After the last action of a program: every message has been sent and received.
  void finish();
  // Every operation of a step on `example`, without other stages: for choices that are made by trying, and for shadows,
  // which also go through evaluation.
  void rehearse(const data::MicroBatch& example);

  // (1) f64 in the memory of the device: the weighted losses of the micro batches since the first. 0 without the head.
  Tensor loss_sum() const { return loss_sum_; }
  // Bytes that deferred products have used of each slot at most, by chunk; empty where none are deferred.
  std::vector<int64_t> deferred_peaks() const;
  int64_t deferred_bytes() const;

  void set_recording(bool on) { records_ = on && may_record_; }

 private:
  void exchange(const ProgramStep& step);
  // What a pass waits for before it begins.
  void prepare_pass(const ProgramStep& step);
  // A pass that waits for other ranks layer by layer cannot be recorded.
  parallel::LayerTraffic traffic(const ProgramStep& step) const;
  bool weights_arrive(const ProgramStep& step) const;

  model::Context context(const ProgramStep& step) const;
  model::Pass pass(const ProgramStep& step) const;
  model::Chunk& chunk_of(const ProgramStep& step) const { return *chunks_[static_cast<size_t>(step.action().chunk)]; }
  void upload(int64_t number, const data::MicroBatch& micro_batch);
  Tensor stream_buffer(int64_t number) const { return number < 0 ? Tensor() : buffers_[static_cast<size_t>(number)]; }

  StageParts parts_;
  model::RopeTable rope_;
  model::RecomputeRoom recompute_room_;
  std::vector<std::unique_ptr<model::Chunk>> chunks_;
  std::vector<Tensor> buffers_;  // of the residual stream
  BatchBuffers batches_;
  Tensor losses_;
  Tensor loss_sum_;
  std::vector<comm::Pending> exchanges_;  // by action

  // Graphs for {forward, backward} x {first, later} micro batch x {without, with} document bounds.
  std::array<RecordedWork, 8> recorded_;
  bool may_record_ = false;
  bool records_ = false;
};

}  // namespace megalith::engine
