#pragma once

#include <optional>
#include <string>

#include "train/run/run_directory.h"

namespace megalith::train {

enum class Ending {
  complete,       // max_steps are done
  stopped_early,  // on request or time limit; saved, run again to continue
};

struct Summary {
  Ending ending = Ending::complete;
  std::string stop_reason;
  int64_t first_step = 0;  // where this process began
  int64_t steps_done = 0;  // of the whole run
  int64_t tokens = 0;      // trained by this process
  double train_seconds = 0.0;
  std::optional<double> train_loss;
  std::optional<double> validation_loss;
  int64_t skipped_steps = 0;
};

// For people, with where things are.
std::string describe(const Summary& summary, const config::Run& run, const RunDirectory& directory);

}  // namespace megalith::train
