#include "parallel/schedule.h"

namespace megalith::parallel {

Schedule single_stage_schedule(int64_t micro_batches) {
  Schedule schedule;
  for (int64_t i = 0; i < micro_batches; ++i) {
    schedule.push_back({.kind = ActionKind::forward, .micro_batch = i});
    schedule.push_back({.kind = ActionKind::backward, .micro_batch = i});
  }
  return schedule;
}

}  // namespace megalith::parallel
