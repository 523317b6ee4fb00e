#pragma once

#include "engine/stage_program.h"
#include "plan/simulate.h"

namespace megalith::plan {

// What the stages of a pipeline do in a step, and when.
struct StepTimeline {
  std::vector<parallel::Schedule> schedules;  // of the stages
  Simulation simulation;
};

// On a clock on which the forward of a layer takes one unit and its backward two, one for each half. What counts as a
// layer where layers are divided takes as long as one; messages take no time.
StepTimeline timeline_of(const engine::StageRequest& request);

// "interleaved 1F1B, 12 chunks per stage"
std::string name_of_schedule(const parallel::Layout& layout);

}  // namespace megalith::plan
