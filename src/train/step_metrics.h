#pragma once

#include <deque>

#include "config/run_config.h"
#include "core/telemetry.h"
#include "train/step.h"

namespace megalith::train {

struct StepReport {
  int64_t step = 0;
  int64_t consumed_samples = 0;
  double learning_rate = 0.0;
  double seconds = 0.0;
  double data_wait = 0.0;
  const StepResult& result;
};

// Turns what a step did into the numbers that are logged, under NeMo's names where it has one.
class StepMetrics {
 public:
  // samples_per_epoch: after which the epoch count goes up.
  StepMetrics(const config::Run& run, int64_t padded_vocabulary, int64_t samples_in_dataset);

  Metrics of_step(const StepReport& report);

 private:
  int64_t timing_window_;
  int64_t samples_in_dataset_;
  double tokens_per_step_;
  double flops_per_step_;
  std::deque<double> recent_seconds_;
};

}  // namespace megalith::train
