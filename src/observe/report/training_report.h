#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <span>
#include <string>

namespace megalith::observe {

// What the numbers of one run are computed from. What is not known is empty, and what depends on it is left out.
struct TrainingInputs {
  std::string name;
  double step_time = 0.0;  // seconds
  // Of the log that it is the mean of.
  struct Averaged {
    std::string log;  // its kind
    int64_t first_step = 0;
    int64_t last_step = 0;
    int64_t records = 0;
  };
  std::optional<Averaged> averaged;
  std::optional<int64_t> batch_size;  // global, in samples
  std::optional<int64_t> accelerators;
  std::optional<int64_t> sequence_length;
  std::optional<double> model_flops;   // of one sample, forward and backward
  std::optional<double> causal_flops;  // the same with half of attention
  std::string model_source;
  std::optional<double> peak_tflops;
  std::string peak_source;
  double tokens = 1e12;
};

// The formulas of the recipes (docs/metrics.md).
std::optional<double> tflops_per_accelerator(const TrainingInputs& inputs);
std::optional<double> model_flops_utilization(const TrainingInputs& inputs);
std::optional<double> tokens_per_second(const TrainingInputs& inputs);
std::optional<double> days_to_train(const TrainingInputs& inputs);

// One column: the three lines of Google's tool, then the others. Several: side by side. With what was put in and by
// which formulas.
std::string training_text(std::span<const TrainingInputs> columns);
std::string training_csv(std::span<const TrainingInputs> columns);
nlohmann::ordered_json training_json(std::span<const TrainingInputs> columns);

}  // namespace megalith::observe
