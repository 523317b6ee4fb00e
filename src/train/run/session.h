#pragma once

#include <optional>

#include "config/fleet_environment.h"
#include "config/load.h"
#include "config/run_config.h"
#include "train/trainer.h"

namespace megalith::comm {
class World;
}

namespace megalith::train {

// What is asked of one start of a run and is no part of its config.
struct StartOptions {
  bool resume_with_other_data = false;                 // than those of the checkpoint
  std::optional<config::FleetEnvironment> fleet = {};  // what a monitor says that has started this rank; none: nobody
};

// `megalith train`: prepares the run directory, data, engine and telemetry, resumes where there is something to resume,
// and runs the trainer. `run` is validated. Throws before anything is written where the config cannot run here.
// `world`: the ranks that train together; null: this one alone.
Summary train(const config::Run& run, const config::LoadReport& report, comm::World& world,
              const StartOptions& options = {});

}  // namespace megalith::train
