#include "train/step_metrics.h"

#include <numeric>

#include "cost/flops.h"

namespace megalith::train {

StepMetrics::StepMetrics(const config::Run& run, int64_t padded_vocabulary, int64_t samples_in_dataset)
    : timing_window_(run.exp_manager.step_timing_buffer_size),
      samples_in_dataset_(samples_in_dataset),
      tokens_per_step_(static_cast<double>(run.model.global_batch_size * run.model.encoder_seq_length)),
      flops_per_step_(cost::model_flops_per_sample(run.model, padded_vocabulary) *
                      static_cast<double>(run.model.global_batch_size)) {}

Metrics StepMetrics::of_step(const StepReport& report) {
  // NeMo logs the mean over the last few steps.
  recent_seconds_.push_back(report.seconds);
  if (static_cast<int64_t>(recent_seconds_.size()) > timing_window_) recent_seconds_.pop_front();
  const double mean_seconds = std::accumulate(recent_seconds_.begin(), recent_seconds_.end(), 0.0) /
                              static_cast<double>(recent_seconds_.size());
  return {.kind = "train",
          .step = report.step,
          .values = {{"reduced_train_loss", report.result.loss},
                     {"lr", report.learning_rate},
                     {"global_step", static_cast<double>(report.step)},
                     {"consumed_samples", static_cast<double>(report.consumed_samples)},
                     {"train_backward_timing in s", report.result.backward_seconds},
                     {"grad_norm", report.result.update.gradient_norm},
                     {"train_step_timing in s", mean_seconds},
                     {"epoch", (report.consumed_samples - 1) / samples_in_dataset_},
                     {"step_time", report.seconds},
                     {"tokens_per_second", tokens_per_step_ / report.seconds},
                     {"tflops", flops_per_step_ / report.seconds / 1e12},
                     {"data_wait", report.data_wait}}};
}

}  // namespace megalith::train
