#pragma once

#include "plan/step_time/run_features.h"

namespace megalith::plan {

// Bytes that some rank needs at least: the states and the kept activations of the first stage. Cheap, and never above
// what a rehearsal says, so that layouts beyond the GPU's memory can be left out without one. `layers_of_chunk`: the
// least layers that a chunk of the first stage has.
double memory_bound(const RunFeatures& run, int64_t layers_of_chunk);

}  // namespace megalith::plan
