#pragma once

#include "cost/memory.h"
#include "model/stage_plan.h"

namespace megalith::model {

using MemoryRequest = StageRequest;

// What a rank needs. The placement is that of its stage.
cost::MemoryTable memory_of_plan(const MemoryRequest& request, const StagePlan& plan,
                                 const parallel::Placement& placement, int64_t replica);

// What a rank of pipeline stage `stage` needs.
cost::MemoryTable memory_of_stage(const MemoryRequest& request, int64_t stage);

struct WorstRank {
  int64_t stage = 0;
  cost::MemoryTable table;
};
WorstRank memory_of_worst_rank(const MemoryRequest& request);

}  // namespace megalith::model
