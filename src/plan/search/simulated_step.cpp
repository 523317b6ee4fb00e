#include "plan/search/simulated_step.h"

#include <algorithm>

#include "parallel/layer_split.h"
#include "parallel/schedule/schedule.h"
#include "plan/simulate.h"
#include "plan/step_time/wire_time.h"

namespace megalith::plan {

namespace {

using parallel::Action;
using parallel::ActionKind;

// Seconds of each chunk of the model, by its number.
struct ChunkTimes {
  std::vector<double> forward;
  std::vector<double> backward;

  double both(size_t chunk) const { return forward[chunk] + backward[chunk]; }
};

ChunkTimes chunk_times(const parallel::Layout& layout, int64_t layers, const BlockTimes& blocks) {
  ChunkTimes times;
  for (const int64_t each : parallel::layers_per_virtual_stage(layout, layers)) {
    times.forward.push_back(static_cast<double>(each) * blocks.layer.forward.total());
    times.backward.push_back(static_cast<double>(each) * blocks.layer.backward.total());
  }
  times.forward.front() += blocks.embedding.forward.total();
  times.backward.front() += blocks.embedding.backward.total();
  times.forward.back() += blocks.head.forward.total();
  times.backward.back() += blocks.head.backward.total();
  return times;
}

struct Messages {
  double message = 0.0;
  double visit = 0.0;  // beside each forward and each backward
};

StepTimeline timeline(const parallel::Layout& layout, const ChunkTimes& times, int64_t micro_batches,
                      const Messages& messages) {
  const auto duration = [&](int64_t stage, const Action& action) {
    if (action.kind == ActionKind::send_receive) return messages.message;
    if (!parallel::is_compute(action)) return 0.0;
    const auto chunk = static_cast<size_t>(action.chunk * layout.pipeline + stage);
    switch (action.kind) {
      case ActionKind::forward:
        return times.forward[chunk] + messages.visit;
      case ActionKind::backward:
        return times.backward[chunk] + messages.visit;
      default:
        return times.backward[chunk] / 2 + messages.visit / 2;
    }
  };
  StepTimeline result{.schedules = parallel::pipeline_schedules(layout, micro_batches)};
  result.simulation = simulate(result.schedules, {.duration = duration});
  return result;
}

double pipeline_seconds(const parallel::Layout& layout, const ChunkTimes& times, int64_t micro_batches,
                        const Messages& messages) {
  return timeline(layout, times, micro_batches, messages).simulation.duration;
}

// Beyond some micro batches, each adds the same.
double extrapolated(const parallel::Layout& layout, const ChunkTimes& times, int64_t micro_batches,
                    const Messages& messages) {
  const int64_t few = 3 * layout.pipeline;
  const int64_t more = 4 * layout.pipeline;
  if (micro_batches <= more) return pipeline_seconds(layout, times, micro_batches, messages);
  const double before = pipeline_seconds(layout, times, few, messages);
  const double after = pipeline_seconds(layout, times, more, messages);
  return after + (after - before) * static_cast<double>(micro_batches - more) / static_cast<double>(more - few);
}

double slowest_stage(const parallel::Layout& layout, const ChunkTimes& times) {
  double slowest = 0.0;
  for (int64_t stage = 0; stage < layout.pipeline; ++stage) {
    double sum = 0.0;
    for (int64_t chunk = 0; chunk < layout.chunks; ++chunk)
      sum += times.both(static_cast<size_t>(chunk * layout.pipeline + stage));
    slowest = std::max(slowest, sum);
  }
  return slowest;
}

Messages messages_of(const RunFeatures& run, const Constants& constants) {
  return {.message = message_time(run, constants), .visit = constants.visit_s / 2};
}

}  // namespace

StepTimeline simulated_pipeline(const RunFeatures& run, const parallel::Layout& layout, const Constants& constants,
                                const BlockTimes& blocks, int64_t micro_batches) {
  return timeline(layout, chunk_times(layout, run.model.layers, blocks), micro_batches, messages_of(run, constants));
}

StepParts simulated_step(const RunFeatures& run, const parallel::Layout& layout, const Constants& constants,
                         const BlockTimes& blocks) {
  StepParts parts = step_time(run, constants, blocks);
  if (layout.pipeline == 1) return parts;
  const ChunkTimes times = chunk_times(layout, run.model.layers, blocks);
  const int64_t m = run.micro_batches();
  const double silent = extrapolated(layout, times, m, {});
  const double whole = extrapolated(layout, times, m, messages_of(run, constants));
  parts.bubble = std::max(0.0, silent - static_cast<double>(m) * slowest_stage(layout, times));
  parts.messages = std::max(0.0, whole - silent);
  parts.jitter = 0.0;
  parts.jitter = jitter_of(run, constants, parts.total());
  return parts;
}

}  // namespace megalith::plan
