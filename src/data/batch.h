#pragma once

#include <cstdint>
#include <future>
#include <limits>
#include <optional>
#include <vector>

#include "config/batch_ramp.h"
#include "data/order/dataset.h"

namespace megalith::data {

// (batch, length), row by row.
struct MicroBatch {  // of whole samples, or of the blocks of them that one of several ranks has
  std::vector<int32_t> inputs;
  std::vector<int32_t> targets;
  std::vector<float> weights;       // of each target in the loss: 0 or 1
  std::vector<int64_t> sample_ids;  // batch; the sample's place in the training order of all ranks
  // Where the document of each input begins in its sample; only with reset_attention_mask. document_bounds.h makes
  // cu_seqlens of it.
  std::vector<int32_t> document_starts;
  std::vector<int32_t> position_ids;     // that start over with each document; only with reset_position_ids
  std::vector<int32_t> first_positions;  // batch; where each begins in its sample. Empty: at 0
  int64_t batch = 0;
  int64_t length = 0;
};

// What one rank computes in one step.
struct StepBatch {
  std::vector<MicroBatch> micro_batches;
  double total_weight = 0.0;  // of this rank's targets
  double wait_seconds = 0.0;  // how long the caller waited for the data
};

struct BatcherOptions {
  int64_t global_batch = 1;
  std::optional<config::BatchRamp> ramp = {};  // to the global batch; none: it is the batch of every step
  int64_t micro_batch = 1;
  int64_t data_rank = 0;
  int64_t data_ranks = 1;
  int64_t consumed_samples = 0;  // where the run stands: the next step takes [consumed, consumed + its batch)
  bool eod_mask_loss = false;    // no loss where the input is `eod`, as it says nothing of what comes next
  bool reset_attention_mask = false;
  bool reset_position_ids = false;
  int32_t eod = -1;
  // Steps that end behind this sample are not read ahead: the last one of a run has no successor, and reading past the
  // horizon would build an index for nothing.
  int64_t read_ahead_until = std::numeric_limits<int64_t>::max();
};

// Deals the samples of each step to ranks and micro batches as Megatron does: of every block of micro_batch x
// data_ranks samples, rank r takes the r-th micro batch. While a step trains, the next one is read in the background,
// one at most.
class Batcher {
 public:
  // The dataset must outlive the batcher. User error if the global batch does not divide evenly.
  Batcher(const Dataset& dataset, const BatcherOptions& options);

  // The next step's batch. An error while reading ahead is thrown here; a further call tries the same step again.
  StepBatch next();

  // Samples handed out so far, by all ranks together.
  int64_t consumed_samples() const { return consumed_; }

 private:
  int64_t batch_at(int64_t first_sample) const;
  StepBatch read_step(int64_t first_sample) const;
  MicroBatch read_micro_batch(int64_t first_sample) const;

  const Dataset& dataset_;
  BatcherOptions options_;
  int64_t consumed_;
  std::future<StepBatch> ahead_;  // last: waits for its thread, which uses the members above, before they go
};

}  // namespace megalith::data
