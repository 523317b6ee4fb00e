#include "train/step.h"

namespace megalith::train {

void run_step(Engine& engine, const data::StepBatch& batch, const StepOrder& order, Progress& progress) {
  engine.begin_step(order.step, batch.total_weight);
  const parallel::Schedule& schedule = engine.program().schedule;
  for (size_t i = 0; i < schedule.size(); ++i) {
    progress.microbatch = schedule[i].micro_batch;
    progress.beat();
    engine.act(i, batch.micro_batches);
  }
  engine.end_step(order.learning_rate, order.step + 1, order.requests_stop);
}

double mean_loss(Engine& engine, data::Batcher& batcher, int64_t batches) {
  EvaluationSum total;
  for (int64_t i = 0; i < batches; ++i) {
    const data::StepBatch batch = batcher.next();
    const EvaluationSum sum = engine.evaluate(batch.micro_batches, batch.total_weight);
    total.loss += sum.loss;
    total.weight += sum.weight;
  }
  return total.weight > 0.0 ? total.loss / total.weight : 0.0;
}

}  // namespace megalith::train
