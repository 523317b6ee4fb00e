#pragma once

#include "parallel/layout.h"
#include "plan/step_time/step_time.h"
#include "plan/step_timeline.h"

namespace megalith::plan {

// The parts of a step with the bubble and the messages of its pipeline as plan::simulate() finds them: stages with
// their own durations, the messages between them, and a visit's overhead. The rest is as step_time() has it.
StepParts simulated_step(const RunFeatures& run, const parallel::Layout& layout, const Constants& constants,
                         const BlockTimes& blocks);

// Its pipeline, with so many micro batches.
StepTimeline simulated_pipeline(const RunFeatures& run, const parallel::Layout& layout, const Constants& constants,
                                const BlockTimes& blocks, int64_t micro_batches);

}  // namespace megalith::plan
