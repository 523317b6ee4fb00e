#pragma once

#include "config/run_config.h"

namespace megalith::optim {

// The learning rate of update `step` (0-based), under NeMo's rules: linear warm-up from 0 at step 0, then
//   CosineAnnealing: half a cosine down to min_lr over max_steps - warmup_steps - constant_steps, then min_lr;
//   linear:          the same with a straight line;
//   WSD:             constant until the last decay_steps of max_steps - constant_steps, then a straight line to min_lr;
//   constant:        lr for ever.
double learning_rate(const config::Optim& optim, int64_t step);

}  // namespace megalith::optim
