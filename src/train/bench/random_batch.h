#pragma once

#include "engine/engine.h"

namespace megalith::train {

// Micro batches of random tokens that fit the engine: for benches, and for tuning.
data::StepBatch random_step(const engine::EngineOptions& options, int64_t micro_batches, int64_t step);

}  // namespace megalith::train
