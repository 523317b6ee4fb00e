#pragma once

#include <cstdint>
#include <vector>

#include "config/run_config.h"

namespace megalith::config {

// How the global batch grows at the start of a run: Megatron's rule for its rampup_batch_size, in its arithmetic. The
// batch of a step follows from the samples consumed before it, so that a run that goes on takes the same steps.
class BatchRamp {
 public:
  // model.rampup_batch_size up to model.global_batch_size; without the former the batch is always the latter.
  explicit BatchRamp(const Model& model);

  // Of the step that begins with this sample.
  int64_t batch_at(int64_t consumed_samples) const;
  // Of all stages, the first first; the last is the global batch.
  std::vector<int64_t> batches() const;
  // The samples consumed when `steps` more steps have followed.
  int64_t consumed_after(int64_t consumed_samples, int64_t steps) const;

 private:
  int64_t start_;
  int64_t increment_ = 0;  // 0: no ramp
  int64_t samples_ = 0;
  int64_t end_;
};

}  // namespace megalith::config
