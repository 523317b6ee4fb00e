#include "plan/step_timeline.h"

#include "parallel/layer_split.h"

namespace megalith::plan {

namespace {

using parallel::Action;
using parallel::ActionKind;
using parallel::Layout;

double forward_time(const engine::StageRequest& request, const parallel::Home& home) {
  const Layout& layout = request.layout;
  const bool first = home == parallel::Home{};
  const bool last = home == parallel::Home{layout.pipeline - 1, layout.chunks - 1};
  int64_t layers = parallel::layers_of(layout, request.config.layers, home).size();
  if (first && layout.split.counts_embedding) ++layers;
  if (last && layout.split.counts_loss) ++layers;
  return static_cast<double>(layers);
}

}  // namespace

StepTimeline timeline_of(const engine::StageRequest& request) {
  const Layout& layout = request.layout;
  std::vector<double> forward;  // by the chunk's number in the model
  for (int64_t number = 0; number < layout.virtual_stages(); ++number) {
    forward.push_back(forward_time(request, {number % layout.pipeline, number / layout.pipeline}));
  }
  const auto duration = [&](int64_t stage, const Action& action) {
    if (!parallel::is_compute(action)) return 0.0;
    const double once = forward[static_cast<size_t>(action.chunk * layout.pipeline + stage)];
    return action.kind == ActionKind::backward ? 2.0 * once : once;
  };
  StepTimeline timeline{.schedules = parallel::pipeline_schedules(layout, request.micro_batches)};
  timeline.simulation = simulate(timeline.schedules, {.duration = duration});
  return timeline;
}

std::string name_of_schedule(const Layout& layout) {
  if (layout.pipeline == 1) return "one stage";
  if (layout.schedule == parallel::PipelineSchedule::zero_bubble) return "zero bubble (ZB-H1)";
  return layout.chunks > 1 ? fmt::format("interleaved 1F1B, {} chunks per stage", layout.chunks) : "1F1B";
}

}  // namespace megalith::plan
