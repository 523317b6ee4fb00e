#include "train/step_metrics.h"

#include <algorithm>
#include <numeric>

#include "config/derived.h"
#include "core/device.h"
#include "core/metric_names.h"
#include "cost/flops.h"
#include "cost/hardware.h"

namespace megalith::train {

std::optional<double> peak_tflops_of(const engine::EngineOptions& options) {
  if (options.stage.device != Device::cuda || options.stage.config.compute != DType::bf16) return std::nullopt;
  const cost::Accelerator* const card = cost::find_accelerator(find_accelerators().at(0).name);
  if (card == nullptr) return std::nullopt;
  const bool is_fp8 = options.stage.config.precision.scaling != model::Scaling::none;
  return is_fp8 ? card->fp8_tflops : card->bf16_tflops;
}

StepMetrics::StepMetrics(const config::Run& run, const StepScale& scale)
    : timing_window_(run.exp_manager.step_timing_buffer_size),
      ranks_(static_cast<double>(config::world_size(run.trainer))),
      tokens_per_sample_(static_cast<double>(run.model.encoder_seq_length)),
      flops_per_sample_(cost::model_flops_per_sample(run.model, scale.padded_vocabulary)),
      batch_grows_(!run.model.rampup_batch_size.empty()),
      counts_saturation_(run.model.fp8 && run.model.fp8_recipe == config::Fp8Recipe::delayed),
      floor_seconds_(run.exp_manager.step_floor_seconds),
      scale_(scale) {}

Metrics StepMetrics::of_step(const StepReport& report) {
  Metrics metrics{.kind = metric::kTrain,
                  .step = report.step,
                  .values = {{metric::kTrainLoss, report.result.loss},
                             {metric::kLearningRate, report.learning_rate},
                             {metric::kGlobalStep, static_cast<double>(report.step)},
                             {metric::kConsumedSamples, static_cast<double>(report.consumed_samples)},
                             {metric::kBackwardTime, report.result.backward_seconds},
                             {metric::kGradientNorm, report.result.update.gradient_norm},
                             {metric::kMeanStepTime, mean_of_recent(report.seconds)},
                             {metric::kEpoch, (report.consumed_samples - 1) / scale_.samples_in_dataset},
                             {metric::kStepTime, report.seconds},
                             {metric::kDataWait, report.data_wait},
                             {metric::kCheckpointStall, report.checkpoint_stall}}};
  if (report.result.update.skipped) metrics.values.emplace_back(metric::kSkipped, int64_t{1});
  if (counts_saturation_) metrics.values.emplace_back(metric::kSaturatedOperands, report.result.saturations);
  if (batch_grows_) metrics.values.emplace_back(metric::kGlobalBatchSize, report.samples);
  add_efficiency(metrics.values, report);
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

void StepMetrics::add_efficiency(Fields& values, const StepReport& report) const {
  const double seconds = report.seconds;
  const double samples_per_second = static_cast<double>(report.samples) / seconds;
  const double tflops = flops_per_sample_ * samples_per_second / 1e12;
  values.emplace_back(metric::kTokensPerSecond, tokens_per_sample_ * samples_per_second);
  values.emplace_back(metric::kTflops, tflops);
  values.emplace_back(metric::kTflopsPerRank, tflops / ranks_);
  if (scale_.peak_tflops) values.emplace_back(metric::kMfu, tflops / ranks_ / *scale_.peak_tflops);
  if (floor_seconds_ > 0.0) values.emplace_back(metric::kFloorFraction, floor_seconds_ / seconds);
}

void StepMetrics::add_ranks(Fields& values, const engine::StepResult& result) {
  if (result.wait_seconds) values.emplace_back(metric::kCommunicationExposed, *result.wait_seconds);
  if (!result.spread) return;
  values.emplace_back(metric::kSlowestRank, result.spread->slowest_rank);
  values.emplace_back(metric::kRankSpread,
                      std::max(0.0, result.spread->slowest_seconds - result.spread->fastest_seconds));
}

void StepMetrics::add_memory(Fields& values) {
  if (memory_is_told_) return;
  memory_is_told_ = true;
  for (const plan::MemoryRow& row : scale_.memory.rows) {
    std::string name = std::string(metric::kMemory) + row.arena;
    std::replace(name.begin(), name.end(), ' ', '_');
    values.emplace_back(std::move(name), row.bytes);
  }
}

}  // namespace megalith::train
