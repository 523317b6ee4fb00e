#include "observe/report/training_report.h"

namespace megalith::observe {

namespace {
constexpr double kSecondsPerDay = 86400.0;

std::optional<double> tflops_of(const TrainingInputs& inputs, std::optional<double> flops_per_sample) {
  if (!flops_per_sample || !inputs.batch_size || !inputs.accelerators) return std::nullopt;
  // In the order in which Google's tool divides, for the same last digit.
  return *flops_per_sample * static_cast<double>(*inputs.batch_size) / inputs.step_time /
         static_cast<double>(*inputs.accelerators) / 1e12;
}
}  // namespace

std::optional<double> tflops_per_accelerator(const TrainingInputs& inputs) {
  return tflops_of(inputs, inputs.model_flops);
}

std::optional<double> model_flops_utilization(const TrainingInputs& inputs) {
  const std::optional<double> tflops = tflops_per_accelerator(inputs);
  if (!tflops || !inputs.peak_tflops) return std::nullopt;
  return *tflops / *inputs.peak_tflops;
}

std::optional<double> tokens_per_second(const TrainingInputs& inputs) {
  if (!inputs.batch_size || !inputs.sequence_length) return std::nullopt;
  return static_cast<double>(*inputs.sequence_length) * static_cast<double>(*inputs.batch_size) / inputs.step_time;
}

std::optional<double> days_to_train(const TrainingInputs& inputs) {
  const std::optional<double> rate = tokens_per_second(inputs);
  if (!rate) return std::nullopt;
  return inputs.tokens / *rate / kSecondsPerDay;
}

}  // namespace megalith::observe
