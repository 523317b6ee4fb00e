#pragma once

#include "core/progress.h"
#include "data/batch.h"
#include "parallel/schedule.h"
#include "train/engine.h"

namespace megalith::train {

struct StepResult {
  double loss = 0.0;  // mean over the weighted tokens
  double backward_seconds = 0.0;
  optim::UpdateResult update;
};

// One training step: the schedule's forwards and backwards, then the update.
StepResult run_step(Engine& engine, const parallel::Schedule& schedule, const data::StepBatch& batch, int64_t step,
                    double learning_rate, Progress& progress);

// Mean loss over `batches` steps' worth of samples from the start of a dataset.
double mean_loss(Engine& engine, data::Batcher& batcher, int64_t batches);

}  // namespace megalith::train
