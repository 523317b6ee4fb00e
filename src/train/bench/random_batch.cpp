#include "train/bench/random_batch.h"

#include "core/rng.h"

namespace megalith::train {

data::StepBatch random_step(const engine::EngineOptions& options, int64_t micro_batches, int64_t step) {
  data::StepBatch batch;
  for (int64_t m = 0; m < micro_batches; ++m) {
    data::MicroBatch micro{.batch = options.stage.batch, .length = options.stage.length};
    for (int64_t i = 0; i < options.stage.batch * options.stage.length; ++i) {
      const auto words = philox(named_key(static_cast<uint64_t>(step), "bench"),
                                {static_cast<uint32_t>(i), static_cast<uint32_t>(m), 0, 0});
      micro.inputs.push_back(static_cast<int32_t>(words[0] % static_cast<uint32_t>(options.stage.config.vocabulary)));
      micro.targets.push_back(static_cast<int32_t>(words[1] % static_cast<uint32_t>(options.stage.config.vocabulary)));
      micro.weights.push_back(1.0F);
    }
    for (int64_t i = 0; i < options.stage.batch; ++i) micro.sample_ids.push_back(m * options.stage.batch + i);
    batch.total_weight += static_cast<double>(micro.weights.size());
    batch.micro_batches.push_back(std::move(micro));
  }
  return batch;
}

}  // namespace megalith::train
