#pragma once

#include "core/progress.h"
#include "data/batch.h"
#include "train/engine.h"

namespace megalith::train {

struct StepOrder {
  int64_t step = 0;
  double learning_rate = 0.0;
  bool requests_stop = false;  // of the run, after this step
};

// Asks for one training step: the actions of the engine's program, then the update. What it did is in
// engine.result_of_step(0).
void run_step(Engine& engine, const data::StepBatch& batch, const StepOrder& order, Progress& progress);

// Mean loss over `batches` steps' worth of samples from the start of a dataset.
double mean_loss(Engine& engine, data::Batcher& batcher, int64_t batches);

}  // namespace megalith::train
