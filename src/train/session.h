#pragma once

#include "config/load.h"
#include "config/run_config.h"
#include "train/trainer.h"

namespace megalith::train {

// `megalith train`: prepares the run directory, data, engine and telemetry, resumes where there is something to resume,
// and runs the trainer. `run` is validated. Throws before anything is written where the config cannot run here.
Summary train(const config::Run& run, const config::LoadReport& report);

}  // namespace megalith::train
