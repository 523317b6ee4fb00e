#include "config/batch_ramp.h"

#include <algorithm>

namespace megalith::config {

BatchRamp::BatchRamp(const Model& model) : start_(model.global_batch_size), end_(model.global_batch_size) {
  const std::vector<int64_t>& ramp = model.rampup_batch_size;
  if (ramp.empty() || ramp[0] == end_) return;
  start_ = ramp[0];
  increment_ = ramp[1];
  samples_ = ramp[2];
}

int64_t BatchRamp::batch_at(int64_t consumed_samples) const {
  if (increment_ == 0 || consumed_samples > samples_) return end_;
  const auto increments = static_cast<double>((end_ - start_) / increment_);
  const double samples_of_stage = static_cast<double>(samples_) / increments;
  const auto done = static_cast<int64_t>(static_cast<double>(consumed_samples) / samples_of_stage);
  return std::min(end_, start_ + done * increment_);
}

std::vector<int64_t> BatchRamp::batches() const {
  std::vector<int64_t> stages;
  for (int64_t batch = start_; batch < end_; batch += increment_) stages.push_back(batch);
  stages.push_back(end_);
  return stages;
}

int64_t BatchRamp::consumed_after(int64_t consumed_samples, int64_t steps) const {
  for (; steps > 0 && batch_at(consumed_samples) < end_; --steps) consumed_samples += batch_at(consumed_samples);
  return consumed_samples + steps * end_;
}

}  // namespace megalith::config
