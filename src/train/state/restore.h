#pragma once

#include "checkpoint/loaded.h"
#include "core/stream.h"
#include "optim/optimizer.h"

namespace megalith::train {

struct RestoreParts {
  const parallel::ParameterTable& table;
  const parallel::ParameterStore& store;
  const optim::Optimizer* optimizer = nullptr;  // absent: weights alone
  bool has_moments = true;                      // else those of the optimizer are left as they are
};

// User error, before anything is read, where a checkpoint is of another model.
void check_fit(const checkpoint::Loaded& checkpoint, const RestoreParts& parts);

// Fills what this rank holds from a checkpoint of any layout and precision. The host waits; no other rank is asked.
void restore(Stream& stream, checkpoint::Loaded& checkpoint, const RestoreParts& parts);

}  // namespace megalith::train
