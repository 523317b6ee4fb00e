#pragma once

#include <string>

#include "config/run_config.h"
#include "engine/engine.h"

namespace megalith::plan {

// Where a run computes: trainer.accelerator, with `auto` settled by what this machine has.
Device device_of(const config::Trainer& trainer);

// What a run is asked to hold: from the effective config, for the layout it names.
engine::StageRequest stage_request(const config::Run& run, int64_t vocabulary);

// The engine that trains it on this machine.
engine::EngineOptions training_options(const config::Run& run, int64_t vocabulary);

}  // namespace megalith::plan
