#pragma once

#include <optional>
#include <string>
#include <vector>

#include "config/run_config.h"
#include "train/bench/op_profile.h"

namespace megalith::train {

struct BenchStepOptions {
  int64_t steps = 3;  // timed, after `warm_up` that are not
  int64_t warm_up = 1;
  int64_t micro_batches = 1;  // per step
  bool profile = true;        // on a GPU: time each operation alone, and the floor from that
};

struct BenchStepResult {
  std::string device;
  std::string driver;          // of a GPU
  double start_seconds = 0.0;  // until the first step was done
  double step_seconds = 0.0;   // the median
  double tokens_per_second = 0.0;
  double flops_per_second = 0.0;         // model FLOPs
  double causal_flops_per_second = 0.0;  // attention counted under its mask
  int64_t planned_bytes = 0;             // the memory table's total
  int64_t peak_bytes = 0;                // what the operating system or the driver saw in use at most
  double loss = 0.0;                     // of the last step
  // CPU: a large matrix product in the same process, as the limit.
  double sgemm_flops_per_second = 0.0;
  // GPU: its peak in the precision of the run, where it is known.
  std::optional<double> peak_tflops;
  // GPU: each operation alone.
  std::vector<OpLine> operations;
  double copy_bytes_per_second = 0.0;
  double floor_seconds = 0.0;
};

// Times training steps on random tokens.
BenchStepResult bench_step(const config::Run& run, const BenchStepOptions& options);

}  // namespace megalith::train
