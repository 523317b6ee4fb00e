#pragma once

#include <string>

#include "config/run_config.h"
#include "model/memory_plan.h"
#include "train/engine.h"

namespace megalith::train {

// Where a run computes: trainer.accelerator, with `auto` settled by what this machine has.
Device device_of(const config::Trainer& trainer);

// What a run is asked to hold: from the effective config, for the layout it names.
model::StageRequest stage_request(const config::Run& run, int64_t vocabulary);

// The engine that trains it on this machine.
EngineOptions training_options(const config::Run& run, int64_t vocabulary);

// Parameter count, FLOPs per sample, the layout where there are several ranks, and the memory table of the worst, for
// people. User error for a layout that cannot work.
std::string describe_model(const config::Run& run, int64_t vocabulary);

}  // namespace megalith::train
