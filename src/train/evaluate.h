#pragma once

#include "data/batch.h"
#include "engine/engine.h"

namespace megalith::train {

// Mean loss over `batches` steps' worth of samples from the start of a dataset.
double mean_loss(engine::Engine& engine, data::Batcher& batcher, int64_t batches);

}  // namespace megalith::train
