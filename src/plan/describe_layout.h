#pragma once

#include <string>

#include "config/run_config.h"
#include "plan/rehearsal.h"

namespace megalith::plan {

// Parameter count, FLOPs per sample, the layout where there are several ranks, and the memory table of the worst, for
// people. User error for a layout that cannot work.
std::string describe_model(const config::Run& run, int64_t vocabulary);

// For people, of a run on several ranks: the layout, its schedule and the idle time in it, and what each pipeline stage
// holds.
std::string describe_layout(const engine::StageRequest& request);

// One rank of it: where it stands, whom it works with, its layers, parameters and memory. User error for a rank that
// the run does not have.
std::string describe_rank(const engine::StageRequest& request, int64_t rank);

}  // namespace megalith::plan
