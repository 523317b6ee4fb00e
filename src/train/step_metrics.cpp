#include "train/step_metrics.h"

#include <algorithm>
#include <numeric>

#include "config/layout.h"
#include "core/device.h"
#include "cost/flops.h"
#include "cost/hardware.h"

namespace megalith::train {

std::optional<double> peak_tflops_of(const EngineOptions& options) {
  if (options.stage.device != Device::cuda || options.stage.config.compute != DType::bf16) return std::nullopt;
  const cost::Accelerator* const card = cost::find_accelerator(find_accelerators().at(0).name);
  return card == nullptr ? std::nullopt : std::optional(card->bf16_tflops);
}

StepMetrics::StepMetrics(const config::Run& run, const StepScale& scale)
    : timing_window_(run.exp_manager.step_timing_buffer_size),
      ranks_(static_cast<double>(config::world_size(run.trainer))),
      tokens_per_step_(static_cast<double>(run.model.global_batch_size * run.model.encoder_seq_length)),
      flops_per_step_(cost::model_flops_per_sample(run.model, scale.padded_vocabulary) *
                      static_cast<double>(run.model.global_batch_size)),
      floor_seconds_(run.exp_manager.step_floor_seconds),
      scale_(scale) {}

Metrics StepMetrics::of_step(const StepReport& report) {
  Metrics metrics{.kind = "train",
                  .step = report.step,
                  .values = {{"reduced_train_loss", report.result.loss},
                             {"lr", report.learning_rate},
                             {"global_step", static_cast<double>(report.step)},
                             {"consumed_samples", static_cast<double>(report.consumed_samples)},
                             {"train_backward_timing in s", report.result.backward_seconds},
                             {"grad_norm", report.result.update.gradient_norm},
                             {"train_step_timing in s", mean_of_recent(report.seconds)},
                             {"epoch", (report.consumed_samples - 1) / scale_.samples_in_dataset},
                             {"step_time", report.seconds},
                             {"data_wait", report.data_wait},
                             {"checkpoint_stall", report.checkpoint_stall}}};
  if (report.result.update.skipped) metrics.values.emplace_back("skipped", int64_t{1});
  add_efficiency(metrics.values, report.seconds);
  add_ranks(metrics.values, report.result);
  add_memory(metrics.values);
  return metrics;
}

// NeMo logs the mean over the last few steps.
double StepMetrics::mean_of_recent(double seconds) {
  recent_seconds_.push_back(seconds);
  if (static_cast<int64_t>(recent_seconds_.size()) > timing_window_) recent_seconds_.pop_front();
  return std::accumulate(recent_seconds_.begin(), recent_seconds_.end(), 0.0) /
         static_cast<double>(recent_seconds_.size());
}

void StepMetrics::add_efficiency(Fields& values, double seconds) const {
  const double tflops = flops_per_step_ / seconds / 1e12;
  values.emplace_back("tokens_per_second", tokens_per_step_ / seconds);
  values.emplace_back("tflops", tflops);
  values.emplace_back("tflops_per_rank", tflops / ranks_);
  if (scale_.peak_tflops) values.emplace_back("mfu", tflops / ranks_ / *scale_.peak_tflops);
  if (floor_seconds_ > 0.0) values.emplace_back("floor_fraction", floor_seconds_ / seconds);
}

void StepMetrics::add_ranks(Fields& values, const StepResult& result) {
  if (result.wait_seconds) values.emplace_back("communication_exposed", *result.wait_seconds);
  if (!result.spread) return;
  values.emplace_back("slowest_rank", result.spread->slowest_rank);
  values.emplace_back("rank_spread", std::max(0.0, result.spread->slowest_seconds - result.spread->fastest_seconds));
}

void StepMetrics::add_memory(Fields& values) {
  if (memory_is_told_) return;
  memory_is_told_ = true;
  for (const cost::MemoryRow& row : scale_.memory.rows) {
    std::string name = "memory." + row.arena;
    std::replace(name.begin(), name.end(), ' ', '_');
    values.emplace_back(std::move(name), row.bytes);
  }
}

}  // namespace megalith::train
