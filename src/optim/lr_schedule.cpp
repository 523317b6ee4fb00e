#include "optim/lr_schedule.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace megalith::optim {

double learning_rate(const config::Optim& optim, int64_t step) {
  const config::Schedule& sched = optim.sched;
  if (step <= sched.warmup_steps && sched.warmup_steps > 0) {
    return optim.lr * static_cast<double>(step) / static_cast<double>(sched.warmup_steps);
  }
  using enum config::LrSchedule;
  if (sched.name == constant) return optim.lr;

  const int64_t decay_end = sched.max_steps - sched.constant_steps;
  const int64_t decay_begin =
      sched.name == wsd ? std::max(sched.warmup_steps, decay_end - sched.decay_steps) : sched.warmup_steps;
  if (step <= decay_begin) return optim.lr;
  if (step >= decay_end) return sched.min_lr;
  const double done = static_cast<double>(step - decay_begin) / static_cast<double>(decay_end - decay_begin);
  const double share = sched.name == cosine ? 0.5 * (std::cos(std::numbers::pi * done) + 1.0) : 1.0 - done;
  return sched.min_lr + share * (optim.lr - sched.min_lr);
}

}  // namespace megalith::optim
