#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "observe/report/training_report.h"

namespace megalith::cli {

// The flags of `megalith report training`. Lists have one value for all columns or one for each.
struct TrainingFlags {
  std::vector<std::string> files;
  std::vector<double> step_times;
  std::vector<int64_t> batch_sizes;
  std::vector<int64_t> accelerators;
  std::vector<int64_t> sequence_lengths;
  std::string model_type;
  double model_flops = 0.0;
  std::string accelerator_type;
  double max_flops = 0.0;  // TFLOPS
  std::string precision = "bf16";
  int64_t start_step = 10;
  int64_t end_step = 30;
  double tokens = 1e12;
};

// A column for each file, or for each step time where there is no file. What the flags do not say is taken from the log
// or from the run's config. User errors say what the files do hold.
struct TrainingColumns {
  std::vector<observe::TrainingInputs> inputs;
  std::vector<std::string> notes;
};
TrainingColumns make_training_columns(const TrainingFlags& flags);

}  // namespace megalith::cli
