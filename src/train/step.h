#pragma once

#include "core/progress.h"
#include "data/batch.h"
#include "parallel/schedule.h"
#include "train/engine.h"

namespace megalith::train {

// Asks for one training step: the schedule's forwards and backwards, then the update. What it did is in
// engine.result_of_step(0).
void run_step(Engine& engine, const parallel::Schedule& schedule, const data::StepBatch& batch, int64_t step,
              double learning_rate, Progress& progress);

// Mean loss over `batches` steps' worth of samples from the start of a dataset.
double mean_loss(Engine& engine, data::Batcher& batcher, int64_t batches);

}  // namespace megalith::train
