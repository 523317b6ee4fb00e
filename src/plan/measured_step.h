#pragma once

#include <vector>

#include "comm/emulated/wire.h"
#include "engine/stage_program.h"
#include "plan/simulate.h"

namespace megalith::plan {

// What the actions of a stage took, as one of its ranks measured them: seconds.
struct MeasuredStage {
  struct Chunk {
    double forward = 0.0;
    double backward = 0.0;  // or, in a zero-bubble schedule, its halves
    double backward_input = 0.0;
    double backward_weight = 0.0;

    double of(parallel::ActionKind kind) const;
  };
  int64_t stage = 0;
  std::vector<Chunk> chunks = {};
  double begin = 0.0;  // of the step, before its first action
  double end = 0.0;    // after its last

  double of(const parallel::Action& action) const;
};

// The measured stage whose times stand for those of `stage`: its own; else of the stages that are neither first nor
// last, the nearest; else the nearest of all. `measured` is not empty.
const MeasuredStage& like_stage(const std::vector<MeasuredStage>& measured, int64_t stage, int64_t stages);

// How long a send_receive of a stage takes, alone on the wire.
double message_seconds(const comm::Wire& wire, const engine::StageRequest& request, int64_t stage,
                       const parallel::Action& action);

// The pipeline of a step with so many micro batches, in which stages take as long as was measured and messages as long
// as the wire says.
Simulation simulate_measured(const engine::StageRequest& request, int64_t micro_batches, const comm::Wire& wire,
                             const std::vector<MeasuredStage>& measured);

// A whole step of the request: its pipeline, and before and after it the longest that a measured stage took.
struct MeasuredStep {
  double begin = 0.0;
  double pipeline = 0.0;
  double idle = 0.0;  // of the pipeline, in which the busiest stage computes nothing
  double end = 0.0;

  double seconds() const { return begin + pipeline + end; }
};
MeasuredStep step_of(const engine::StageRequest& request, const comm::Wire& wire,
                     const std::vector<MeasuredStage>& measured);

}  // namespace megalith::plan
