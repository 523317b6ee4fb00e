#pragma once

#include <string>

#include "observe/logs/run_history.h"
#include "plan/search/search.h"

namespace megalith::plan {

// What was predicted of a run beside what its logs tell: step, exposed communication, backward, stalls, memory.
// `copy_s`: what a checkpoint was to cost training. A user error where the logs have no step times.
std::string compare_with_run(const PlannedLayout& predicted, double copy_s, const observe::RunHistory& run);

}  // namespace megalith::plan
