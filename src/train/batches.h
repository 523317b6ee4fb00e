#pragma once

#include "config/run_config.h"
#include "data/batch.h"
#include "engine/engine.h"

namespace megalith::train {

// How the config deals samples to the micro batches of the engine's rank, from the first sample on. User error where
// document boundaries matter and the tokenizer has no end-of-document token.
data::BatcherOptions batcher_options(const config::Run& run, const data::Vocabulary& vocabulary,
                                     const engine::Engine& engine);

}  // namespace megalith::train
