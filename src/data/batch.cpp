#include "data/batch.h"

#include <algorithm>

#include "core/clock.h"
#include "core/error.h"
#include "core/process/failpoint.h"
#include "core/tensor.h"
#include "data/document_bounds.h"

namespace megalith::data {

Batcher::Batcher(const Dataset& dataset, const BatcherOptions& options)
    : dataset_(dataset), options_(options), consumed_(options.consumed_samples) {
  MEGALITH_CHECK(options.data_rank >= 0 && options.data_rank < options.data_ranks && consumed_ >= 0,
                 "data rank {} of {}, {} samples consumed", options.data_rank, options.data_ranks, consumed_);
  const int64_t block = options.micro_batch * options.data_ranks;
  if (block <= 0 || options.global_batch <= 0 || options.global_batch % block != 0) {
    user_error("model.global_batch_size {} is not a multiple of model.micro_batch_size {} x {} data-parallel ranks",
               options.global_batch, options.micro_batch, options.data_ranks);
  }
}

int64_t Batcher::batch_at(int64_t first_sample) const {
  return options_.ramp ? options_.ramp->batch_at(first_sample) : options_.global_batch;
}

StepBatch Batcher::next() {
  const double begin = monotonic_seconds();
  StepBatch step = ahead_.valid() ? ahead_.get() : read_step(consumed_);
  step.wait_seconds = monotonic_seconds() - begin;
  consumed_ += batch_at(consumed_);
  if (consumed_ + batch_at(consumed_) <= options_.read_ahead_until) {
    ahead_ = std::async(std::launch::async, [this, first = consumed_] { return read_step(first); });
  }
  return step;
}

StepBatch Batcher::read_step(int64_t first_sample) const {
  pass_failpoint("data.batch");
  StepBatch step;
  const int64_t block = options_.micro_batch * options_.data_ranks;
  for (int64_t i = 0; i < div_exact(batch_at(first_sample), block); ++i) {
    step.micro_batches.push_back(
        read_micro_batch(first_sample + i * block + options_.data_rank * options_.micro_batch));
    for (const float weight : step.micro_batches.back().weights) step.total_weight += weight;
  }
  return step;
}

MicroBatch Batcher::read_micro_batch(int64_t first_sample) const {
  MicroBatch micro;
  micro.batch = options_.micro_batch;
  micro.length = dataset_.sequence_length();
  const auto tokens = static_cast<size_t>(micro.batch * micro.length);
  micro.inputs.reserve(tokens);
  micro.targets.reserve(tokens);
  std::vector<int32_t> sample(static_cast<size_t>(micro.length + 1));
  for (int64_t i = 0; i < micro.batch; ++i) {
    micro.sample_ids.push_back(first_sample + i);
    dataset_.sample(first_sample + i, sample);
    micro.inputs.insert(micro.inputs.end(), sample.begin(), sample.end() - 1);
    micro.targets.insert(micro.targets.end(), sample.begin() + 1, sample.end());
  }
  micro.weights.assign(tokens, 1.0f);
  if (options_.eod_mask_loss) {
    std::transform(micro.inputs.begin(), micro.inputs.end(), micro.weights.begin(),
                   [eod = options_.eod](int32_t token) { return token == eod ? 0.0f : 1.0f; });
  }
  if (options_.reset_attention_mask || options_.reset_position_ids) {
    micro.document_starts = document_starts(micro.inputs, micro.length, options_.eod);
    if (options_.reset_position_ids) micro.position_ids = document_positions(micro.document_starts, micro.length);
    if (!options_.reset_attention_mask) micro.document_starts.clear();
  }
  return micro;
}

}  // namespace megalith::data
