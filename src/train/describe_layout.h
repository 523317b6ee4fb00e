#pragma once

#include <string>

#include "model/memory_plan.h"

namespace megalith::train {

// For people, of a run on several ranks: the layout, its schedule and the idle time in it, and what each pipeline stage
// holds.
std::string describe_layout(const model::StageRequest& request);

// One rank of it: where it stands, whom it works with, its layers, parameters and memory. User error for a rank that
// the run does not have.
std::string describe_rank(const model::StageRequest& request, int64_t rank);

// "125,226,240"
std::string with_commas(int64_t number);

}  // namespace megalith::train
