#pragma once

#include <memory>
#include <vector>

#include "checkpoint/store.h"
#include "config/run_config.h"
#include "cost/memory.h"
#include "data/batch.h"
#include "model/chunk.h"
#include "model/memory_plan.h"
#include "optim/optimizer.h"

namespace megalith::train {

// The arenas of one rank, sized by the memory table before anything is computed.
struct Arenas {
  Arenas(const cost::MemoryTable& table, bool training);

  Arena weights;
  Arena gradients;
  Arena masters;
  Arena moments;
  Arena activations;
  Arena scratch;
  Arena batch;
};

struct EngineOptions {
  model::ModelConfig model;
  int64_t batch = 1;  // micro batch
  int64_t length = 0;
  int threads = 1;
  uint64_t seed = 0;  // of dropout
  bool training = true;
  config::Optim optim = {};
  double clip_norm = 0.0;
};

// What one rank computes with: memory, model, optimizer. It knows nothing of files, steps to come or who watches.
class Engine {
 public:
  explicit Engine(const EngineOptions& options);

  void initialise(uint64_t seed);

  // Weighted sum of the losses of a micro batch. `scale` is what one unit of weight counts in the gradient.
  double forward(const data::MicroBatch& micro_batch, int64_t step, double scale);
  // Adds the gradients of the micro batch that went forward last.
  void backward();
  double evaluate(const data::MicroBatch& micro_batch);

  void zero_gradients() { store_.zero_gradients(stream_); }
  optim::UpdateResult update(double learning_rate, int64_t update) {
    return optimizer_->update(stream_, learning_rate, update);
  }

  const cost::MemoryTable& memory() const { return memory_; }
  const Arenas& arenas() const { return arenas_; }
  const parallel::ParameterStore& parameters() const { return store_; }
  const EngineOptions& options() const { return options_; }
  Stream& stream() { return stream_; }

  // Weights, masters and moments, under their logical names: what a checkpoint holds.
  std::vector<checkpoint::NamedTensor> state() const;
  // Fills that state (weights alone where nothing is trained) from a checkpoint.
  void restore(checkpoint::Loaded& checkpoint);

 private:
  model::Context context(bool training, int64_t step);
  void take(const data::MicroBatch& micro_batch);
  double sum_of_losses() const;

  EngineOptions options_;
  cost::MemoryTable memory_;
  Arenas arenas_;
  ThreadPool pool_;
  Stream stream_;
  parallel::ParameterStore store_;
  model::Chunk chunk_;
  std::unique_ptr<optim::Optimizer> optimizer_;

  Tensor ids_;
  model::Targets targets_;
  Tensor sample_ids_;
  Tensor document_starts_;
  Tensor positions_;
  bool has_document_starts_ = false;
  bool has_positions_ = false;
  int64_t step_ = 0;
};

}  // namespace megalith::train
