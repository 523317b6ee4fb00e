#include "train/step.h"

namespace megalith::train {

void run_step(Engine& engine, const parallel::Schedule& schedule, const data::StepBatch& batch, int64_t step,
              double learning_rate, Progress& progress) {
  // A token counts the same wherever micro batches and masks fall.
  engine.begin_step(step, batch.total_weight > 0.0 ? 1.0 / batch.total_weight : 0.0);
  for (const parallel::Action& action : schedule) {
    progress.microbatch = action.micro_batch;
    progress.beat();
    if (action.kind == parallel::ActionKind::forward) {
      engine.forward(batch.micro_batches[static_cast<size_t>(action.micro_batch)]);
    } else {
      engine.backward();
    }
  }
  engine.end_step(learning_rate, step + 1);
}

double mean_loss(Engine& engine, data::Batcher& batcher, int64_t batches) {
  double loss = 0.0;
  double weight = 0.0;
  for (int64_t i = 0; i < batches; ++i) {
    const data::StepBatch batch = batcher.next();
    for (const data::MicroBatch& micro_batch : batch.micro_batches) loss += engine.evaluate(micro_batch);
    weight += batch.total_weight;
  }
  return weight > 0.0 ? loss / weight : 0.0;
}

}  // namespace megalith::train
