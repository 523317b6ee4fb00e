#pragma once

#include <array>
#include <vector>

#include "data/batch.h"
#include "model/chunk.h"
#include "model/stage_plan.h"
#include "ops/step_scalars.h"
#include "parallel/groups.h"
#include "parallel/replica_sync.h"
#include "train/batch_buffers.h"

namespace megalith::train {

struct StageParts {
  const model::StagePlan& plan;
  const parallel::Layout& layout;
  const parallel::ParameterStore& store;
  const parallel::Groups& groups;
  parallel::ReplicaSync* sync = nullptr;  // null where nothing is trained
  Stream& stream;
  Arena& activations;
  Arena& scratch;
  Arena& batch;
  int64_t deferred_bytes_per_layer = 0;
  int64_t document_room = 0;
  bool orders_rows = false;
  parallel::ContextSplit split = {};
  const ops::StepScalars* scalars = nullptr;  // in the memory of the device
  uint64_t seed = 0;                          // of dropout
  bool deterministic = true;
};

// This rank's chunks of the model with the memory they work in: carries out the actions of a program. All that it is
// given must outlive it.
class Stage {
 public:
  explicit Stage(const StageParts& parts);

  // An action of the plan's training program, or of its evaluation program.
  void train(size_t action, const std::vector<data::MicroBatch>& micro_batches);
  void evaluate(size_t action, const std::vector<data::MicroBatch>& micro_batches);
  // After the last action of a program: every message has been sent and received.
  void finish();
  // Every operation of a step on `example`, without other stages: for plans that are made by trying.
  void rehearse(const data::MicroBatch& example);

  // (1) f64 in the memory of the device: the weighted losses of the micro batches since the first. 0 without the head.
  Tensor loss_sum() const { return loss_sum_; }

  void set_recording(bool on) { records_ = on && may_record_; }

 private:
  struct Step {
    const parallel::StepProgram& program;
    size_t index = 0;
    bool training = true;

    const parallel::Action& action() const { return program.schedule[index]; }
    const parallel::Operands& operands() const { return program.operands[index]; }
  };
  void act(const Step& step, const std::vector<data::MicroBatch>& micro_batches);
  void forward(const Step& step);
  void backward(const Step& step);
  void exchange(const Step& step);
  void reduce(size_t bucket);

  model::Context context(const Step& step) const;
  model::Pass pass(const Step& step) const;
  model::Chunk& chunk_of(const Step& step) { return *chunks_[static_cast<size_t>(step.action().chunk)]; }
  data::MicroBatch share(const data::MicroBatch& micro_batch) const;
  Tensor stream_buffer(int64_t number) const { return number < 0 ? Tensor() : buffers_[static_cast<size_t>(number)]; }

  // Weights on their way are waited for layer by layer.
  bool waits_for_weights(const Step& step) const;
  void wait_for_layer(int64_t chunk, int64_t layer);
  // The reductions that follow the action are started bucket by bucket while it still runs.
  bool is_last_backward(const Step& step) const;
  void reduce_finished_buckets(int64_t chunk, int64_t layer);
  int64_t first_layer_of(const parallel::Bucket& bucket) const;

  StageParts parts_;
  model::RopeTable rope_;
  model::RecomputeRoom recompute_room_;
  std::vector<std::unique_ptr<model::Chunk>> chunks_;
  std::vector<Tensor> buffers_;  // of the residual stream
  BatchBuffers batches_;
  Tensor losses_;
  Tensor loss_sum_;
  std::vector<comm::Pending> exchanges_;  // by action
  std::vector<int64_t> bucket_layers_;    // a bucket's gradients are complete when backward has come to this layer
  std::vector<bool> is_reduced_;          // in this backward
  model::LayerHooks hooks_;               // of a forward that waits for weights and of a last backward
  int64_t chunk_in_hooks_ = 0;

  struct Recorded {
    RecordedWork forward, backward;
  };
  Recorded& recorded(const Step& step);
  // Of the first micro batch of a step, and of any other; both without document bounds, and with.
  std::array<Recorded, 4> recorded_;
  bool may_record_ = false;
  bool records_ = false;
};

}  // namespace megalith::train
