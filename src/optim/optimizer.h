#pragma once

#include <string>
#include <vector>

#include "config/run_config.h"
#include "core/arena.h"
#include "core/stream.h"
#include "ops/optimizer.h"
#include "parallel/parameter_store.h"

namespace megalith::optim {

// Optimizer state of one parameter, in the main dtype.
struct State {
  Tensor master;  // the weight itself where that is in the main dtype
  Tensor exp_avg;
  Tensor exp_avg_sq;
};

struct UpdateResult {
  double gradient_norm = 0.0;
  bool skipped = false;          // a gradient was not finite: nothing was changed
  std::string first_non_finite;  // the parameter it was found in
};

// AdamW with clipping by the global norm.
class Optimizer {
 public:
  // `masters` is used only where weights are not in the main dtype.
  Optimizer(const config::Optim& config, double clip_norm, const parallel::ParameterStore& store, Arena& masters,
            Arena& moments);

  // Copies the weights into their masters: after initialisation, before the first update.
  void initialise(Stream& stream);

  // One update from the gradients. `update` counts from 1 and includes every update before, skipped or not.
  UpdateResult update(Stream& stream, double learning_rate, int64_t update);

  const std::vector<State>& states() const { return states_; }

 private:
  // Sums of squares of every gradient, in the order of the parameters.
  std::vector<double> squared_norms(Stream& stream);

  config::Optim config_;
  double clip_norm_;
  const parallel::ParameterStore& store_;
  std::vector<State> states_;
  std::vector<double> partials_;
  ops::UpdateScalars scalars_;
};

}  // namespace megalith::optim
