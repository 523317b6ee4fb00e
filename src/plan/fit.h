#pragma once

#include <string>

#include "core/process/host_memory.h"
#include "plan/rehearsal.h"

namespace megalith::plan {

// A model that does not fit `available` bytes of a GPU is refused with its memory table and the cheapest change that
// would make it fit.
void require_fit(const engine::StageRequest& request, int64_t available);

// The same for ranks on the CPUs of one machine, which share its memory. `saves`: each holds a copy of the state while
// it writes a checkpoint.
struct RanksOnHost {
  int64_t ranks = 1;
  bool saves = true;
};
void require_fit(const engine::StageRequest& request, const RanksOnHost& ranks, const HostMemory& memory);

}  // namespace megalith::plan
