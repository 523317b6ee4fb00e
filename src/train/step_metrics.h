#pragma once

#include <deque>
#include <optional>

#include "config/run_config.h"
#include "core/telemetry.h"
#include "plan/memory_table.h"
#include "train/evaluate.h"

namespace megalith::train {

struct StepReport {
  int64_t step = 0;
  int64_t samples = 0;  // of its batch
  int64_t consumed_samples = 0;
  double learning_rate = 0.0;
  double seconds = 0.0;
  double data_wait = 0.0;
  double checkpoint_stall = 0.0;  // seconds that saving held up the loop since the step before
  const engine::StepResult& result;
};

// What the numbers of all steps of a run are made with.
struct StepScale {
  int64_t padded_vocabulary = 0;
  int64_t samples_in_dataset = 1;     // after which the epoch count goes up
  std::optional<double> peak_tflops;  // of the accelerator of one rank, in the run's precision
  plan::MemoryTable memory = {};      // of this rank
};

// The peak of what an engine computes on, for MFU. Nothing where the maker states none: for a CPU, for fp32 on a GPU
// (the tables are of tensor cores), for a card that is not in the tables. A wrong peak would make a wrong MFU.
std::optional<double> peak_tflops_of(const engine::EngineOptions& options);

// Turns what a step did into the numbers that are logged, under NeMo's names where it has one. What is not known is
// left out. `floor_fraction` is exp_manager.step_floor_seconds by the step's time: a floor is measured operation by
// operation, which takes a while and leaves memory as garbage, so that `megalith bench step` does it before a run;
// there is no made-up one. Memory by arena does not change: the first step of a process tells it.
class StepMetrics {
 public:
  StepMetrics(const config::Run& run, const StepScale& scale);

  Metrics of_step(const StepReport& report);

 private:
  double mean_of_recent(double seconds);
  void add_efficiency(Fields& values, const StepReport& report) const;
  static void add_ranks(Fields& values, const engine::StepResult& result);
  void add_memory(Fields& values);

  int64_t timing_window_;
  double ranks_;
  double tokens_per_sample_;
  double flops_per_sample_;
  bool batch_grows_;
  bool counts_saturation_;
  double floor_seconds_;
  StepScale scale_;
  bool memory_is_told_ = false;
  std::deque<double> recent_seconds_;
};

}  // namespace megalith::train
