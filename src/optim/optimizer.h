#pragma once

#include <vector>

#include "config/run_config.h"
#include "core/arena.h"
#include "core/device.h"
#include "core/stream.h"
#include "ops/optimizer.h"
#include "parallel/placement/parameter_store.h"

namespace megalith::optim {

// The rows of a parameter that this rank updates, and their state in the main dtype.
struct State {
  parallel::ShardPiece piece;
  Tensor weight;  // of the store, as is the gradient
  Tensor gradient;
  Tensor remainder;  // i16: what the weight lacks of its fp32 master; absent where it is in the main dtype itself
  Tensor exp_avg;
  Tensor exp_avg_sq;
};

struct OptimizerOptions {
  config::Optim optim;
  double clip_norm = 0.0;
  // After a gradient that is not finite nothing is updated any more: the run is about to be stopped.
  bool stop_at_non_finite = false;
};

struct OptimizerArenas {
  Arena& masters;  // used only where weights are bf16
  Arena& moments;
  Arena& table;
};

// AdamW with clipping by the norm of all gradients of the model, on this rank's shard of the parameters. No step waits
// for the device: what an update did is in scalars().
class Optimizer {
 public:
  Optimizer(const OptimizerOptions& options, const parallel::ParameterStore& store, Stream& stream,
            const OptimizerArenas& arenas);

  // Masters begin as the weights, moments as zero: after initialisation, before the first update.
  void initialise(Stream& stream);

  // One update from the gradients, in two halves. `update` counts from 1 and includes every update before, skipped or
  // not. measure() leaves this rank's part of the squared norm in squared_norm(), which must be the sum over all ranks
  // when apply() is called.
  void measure(Stream& stream, double learning_rate, int64_t update) const;
  void apply(Stream& stream) const;
  // (1) f64 in the memory of the device.
  Tensor squared_norm() const;

  // One ops::UpdateScalars, in the memory of the device. Its first_non_finite counts in store.all(), and only what this
  // rank adds to the norm: where another rank has found one, it is -1 here.
  Tensor scalars() const { return scalars_; }
  // In the order of forward; of each parameter one at the most.
  const std::vector<State>& states() const { return states_; }

 private:
  void make_states(const OptimizerArenas& arenas);
  ops::UpdateTiles upload_tiles(Stream& stream, Arena& arena, const std::vector<parallel::ParameterRows>& rows) const;
  ops::UpdateScalars* device_scalars() const { return static_cast<ops::UpdateScalars*>(scalars_.data); }

  OptimizerOptions options_;
  const parallel::ParameterStore& store_;
  std::vector<State> states_;
  std::vector<Tensor> slabs_;  // the state of whole slabs, padding included
  ops::UpdateTiles updated_;
  ops::UpdateTiles counted_;  // in the norm
  Tensor partials_;
  Tensor scalars_;
};

}  // namespace megalith::optim
