#include "train/evaluate.h"

namespace megalith::train {

double mean_loss(engine::Engine& engine, data::Batcher& batcher, int64_t batches) {
  engine::EvaluationSum total;
  for (int64_t i = 0; i < batches; ++i) {
    const data::StepBatch batch = batcher.next();
    const engine::EvaluationSum sum = engine.evaluate(batch.micro_batches, batch.total_weight);
    total.loss += sum.loss;
    total.weight += sum.weight;
  }
  return total.weight > 0.0 ? total.loss / total.weight : 0.0;
}

}  // namespace megalith::train
