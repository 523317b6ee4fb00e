#pragma once

#include <vector>

#include "config/run_config.h"
#include "core/arena.h"
#include "core/device.h"
#include "core/stream.h"
#include "ops/optimizer.h"
#include "parallel/parameter_store.h"

namespace megalith::optim {

// Optimizer state of one parameter, in the main dtype.
struct State {
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

// AdamW with clipping by the global norm. No step waits for the device: what an update did is in scalars().
class Optimizer {
 public:
  Optimizer(const OptimizerOptions& options, const parallel::ParameterStore& store, Stream& stream,
            const OptimizerArenas& arenas);

  // Masters begin as the weights, moments as zero: after initialisation, before the first update.
  void initialise(Stream& stream);

  // One update from the gradients. `update` counts from 1 and includes every update before, skipped or not.
  void update(Stream& stream, double learning_rate, int64_t update);

  // One ops::UpdateScalars, in the memory of the device.
  Tensor scalars() const { return scalars_; }
  const std::vector<State>& states() const { return states_; }

 private:
  ops::UpdateScalars* device_scalars() const { return static_cast<ops::UpdateScalars*>(scalars_.data); }

  OptimizerOptions options_;
  const parallel::ParameterStore& store_;
  std::vector<State> states_;
  ops::UpdateTiles tiles_;
  Tensor partials_;
  Tensor scalars_;
};

}  // namespace megalith::optim
