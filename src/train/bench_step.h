#pragma once

#include <string>

#include "config/run_config.h"

namespace megalith::train {

struct BenchStepOptions {
  int64_t steps = 3;          // timed, after one that is not
  int64_t micro_batches = 1;  // per step
};

struct BenchStepResult {
  double step_seconds = 0.0;  // the median
  double tokens_per_second = 0.0;
  double gflops = 0.0;        // model FLOPs
  double sgemm_gflops = 0.0;  // a large matrix product in the same process
  int64_t planned_bytes = 0;  // the memory table's total
  int64_t peak_bytes = 0;     // what the kernel saw resident at most
};

// Times training steps on random tokens, and a large sgemm before and after, as the limit.
BenchStepResult bench_step(const config::Run& run, const BenchStepOptions& options);

}  // namespace megalith::train
