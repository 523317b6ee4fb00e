#pragma once

#include <string>

#include "observe/logs/run_history.h"
#include "plan/search/search.h"

namespace megalith::plan {

// What was predicted of a run beside what its logs tell: step, exposed communication, backward, stalls, memory.
// `copy_s`: what a checkpoint was to cost training. `memory`: of rank 0, which is the one that logs. A user error where
// the logs have no step times.
std::string compare_with_run(const PlannedLayout& predicted, double copy_s, const MemoryTable& memory,
                             const observe::RunHistory& run);
// Memory alone. A user error where the logs have none.
std::string compare_memory(const MemoryTable& memory, const observe::RunHistory& run);

}  // namespace megalith::plan
