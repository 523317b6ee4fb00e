#include "parallel/schedule/schedule.h"

#include <algorithm>

#include "parallel/schedule/pipeline_order.h"
#include "parallel/schedule/transfers.h"

namespace megalith::parallel {

bool is_compute(const Action& action) {
  switch (action.kind) {
    case ActionKind::forward:
    case ActionKind::backward:
    case ActionKind::backward_input:
    case ActionKind::backward_weight:
      return true;
    default:
      return false;
  }
}

bool ends_backward(const Action& action) {
  return action.kind == ActionKind::backward || action.kind == ActionKind::backward_weight;
}

Schedule single_stage_schedule(int64_t micro_batches, int64_t chunks) {
  Schedule schedule;
  for (int64_t i = 0; i < micro_batches; ++i) {
    for (int64_t c = 0; c < chunks; ++c)
      schedule.push_back({.kind = ActionKind::forward, .chunk = c, .micro_batch = i});
    for (int64_t c = chunks - 1; c >= 0; --c)
      schedule.push_back({.kind = ActionKind::backward, .chunk = c, .micro_batch = i});
  }
  return schedule;
}

std::string schedule_problem(const Layout& layout, int64_t micro_batches) {
  const bool zero_bubble = layout.schedule == PipelineSchedule::zero_bubble;
  if (micro_batches < 1) return "a step needs at least one micro batch";
  if (zero_bubble && layout.pipeline == 1) return "the zero-bubble schedule needs more than one pipeline stage";
  if (zero_bubble && layout.chunks > 1) return "the zero-bubble schedule takes one chunk per stage";
  if (layout.pipeline > 1 && layout.chunks > 1 && micro_batches < layout.pipeline) {
    return fmt::format(
        "{} micro batches are too few to interleave {} chunks on each of {} stages: use at least {}, best a multiple "
        "of "
        "it, or one chunk per stage",
        micro_batches, layout.chunks, layout.pipeline, layout.pipeline);
  }
  return "";
}

StageSchedules pipeline_stages(const Layout& layout, int64_t micro_batches) {
  const std::string problem = schedule_problem(layout, micro_batches);
  if (!problem.empty()) user_error("{}", problem);
  if (layout.pipeline == 1) return StageSchedules({single_stage_schedule(micro_batches, layout.chunks)});
  std::vector<Schedule> orders;
  for (int64_t stage = 0; stage < layout.pipeline; ++stage)
    orders.push_back(pipeline_order(layout, stage, micro_batches));
  return StageSchedules(std::move(orders));
}

StageSchedules evaluation_stages(const Layout& layout, int64_t micro_batches) {
  // Blocks of as many micro batches as there are stages fill the pipeline, whatever the number of chunks.
  Schedule order;
  for (int64_t begin = 0; begin < micro_batches; begin += layout.pipeline) {
    const int64_t end = std::min(micro_batches, begin + layout.pipeline);
    for (int64_t chunk = 0; chunk < layout.chunks; ++chunk) {
      for (int64_t i = begin; i < end; ++i)
        order.push_back({.kind = ActionKind::forward, .chunk = chunk, .micro_batch = i});
    }
  }
  return StageSchedules(std::vector<Schedule>(static_cast<size_t>(layout.pipeline), order));
}

std::vector<Schedule> pipeline_schedules(const Layout& layout, int64_t micro_batches) {
  return pipeline_stages(layout, micro_batches).all();
}

std::vector<Schedule> evaluation_schedules(const Layout& layout, int64_t micro_batches) {
  return evaluation_stages(layout, micro_batches).all();
}

}  // namespace megalith::parallel
