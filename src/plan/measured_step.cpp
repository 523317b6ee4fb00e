#include "plan/measured_step.h"

#include <algorithm>
#include <cstdlib>
#include <map>

#include "parallel/mesh.h"

namespace megalith::plan {

using parallel::Action;
using parallel::ActionKind;
using parallel::Axis;

double MeasuredStage::Chunk::of(ActionKind kind) const {
  switch (kind) {
    case ActionKind::forward:
      return forward;
    case ActionKind::backward:
      return backward;
    case ActionKind::backward_input:
      return backward_input;
    case ActionKind::backward_weight:
      return backward_weight;
    default:
      return 0.0;
  }
}

double MeasuredStage::of(const Action& action) const {
  return chunks.at(static_cast<size_t>(action.chunk)).of(action.kind);
}

const MeasuredStage& like_stage(const std::vector<MeasuredStage>& measured, int64_t stage, int64_t stages) {
  MEGALITH_CHECK(!measured.empty(), "no stage was measured");
  const auto unlike = [&](const MeasuredStage& other) {
    const bool at_an_end = other.stage == 0 || other.stage == stages - 1;
    return std::tuple{other.stage != stage, at_an_end, std::abs(other.stage - stage)};
  };
  return *std::min_element(measured.begin(), measured.end(),
                           [&](const auto& a, const auto& b) { return unlike(a) < unlike(b); });
}

namespace {

int64_t message_bytes(const engine::StageRequest& request) {
  const parallel::Layout& layout = request.layout;
  const int64_t tokens = request.batch * request.length / layout.context;
  const int64_t rows = layout.sequence_parallel ? div_exact(tokens, layout.tensor) : tokens;
  return rows * request.config.hidden * size_of(request.config.compute);
}

// Of the ranks with the first place on all other axes.
comm::Group pipeline_of(const parallel::Layout& layout, int64_t stage) {
  const parallel::Mesh mesh(layout);
  return {.name = "pipeline",
          .ranks = mesh.group_of(mesh.rank_of({.pp = stage}), {Axis::pp}),
          .member = static_cast<int>(stage)};
}

}  // namespace

double message_seconds(const comm::Wire& wire, const engine::StageRequest& request, int64_t stage,
                       const Action& action) {
  const Tensor message(nullptr, DType::e4m3, {message_bytes(request)});
  const auto messages = [&](const std::vector<parallel::Transfer>& transfers) {
    std::vector<comm::Message> all;
    for (const parallel::Transfer& transfer : transfers) all.push_back({static_cast<int>(transfer.peer), message});
    return all;
  };
  const comm::Call call{
      .operation = comm::Operation::exchange, .sends = messages(action.sends), .receives = messages(action.receives)};
  return seconds_alone(wire, cost_of(wire, pipeline_of(request.layout, stage), call));
}

Simulation simulate_measured(const engine::StageRequest& request, int64_t micro_batches, const comm::Wire& wire,
                             const std::vector<MeasuredStage>& measured) {
  const int64_t stages = request.layout.pipeline;
  std::vector<const MeasuredStage*> times;
  for (int64_t stage = 0; stage < stages; ++stage) times.push_back(&like_stage(measured, stage, stages));
  // Messages are all of one size: what they take depends on where they go and come from.
  std::map<std::pair<int64_t, std::vector<int64_t>>, double> known;
  const auto duration = [&](int64_t stage, const Action& action) {
    if (parallel::is_compute(action)) return times[static_cast<size_t>(stage)]->of(action);
    if (action.kind != ActionKind::send_receive) return 0.0;
    std::vector<int64_t> peers;
    for (const parallel::Transfer& sent : action.sends) peers.push_back(sent.peer);
    peers.push_back(-1);
    for (const parallel::Transfer& received : action.receives) peers.push_back(received.peer);
    const auto [at, is_new] = known.try_emplace({stage, std::move(peers)}, 0.0);
    if (is_new) at->second = message_seconds(wire, request, stage, action);
    return at->second;
  };
  return simulate(parallel::pipeline_schedules(request.layout, micro_batches), {.duration = duration});
}

MeasuredStep step_of(const engine::StageRequest& request, const comm::Wire& wire,
                     const std::vector<MeasuredStage>& measured) {
  const Simulation simulation = simulate_measured(request, request.micro_batches, wire, measured);
  MeasuredStep step{.pipeline = simulation.duration, .idle = simulation.duration};
  for (const StageTimeline& stage : simulation.stages)
    step.idle = std::min(step.idle, simulation.duration - stage.busy);
  for (const MeasuredStage& stage : measured) {
    step.begin = std::max(step.begin, stage.begin);
    step.end = std::max(step.end, stage.end);
  }
  return step;
}

}  // namespace megalith::plan
