#pragma once

#include "cost/memory.h"
#include "model/stage_plan.h"

namespace megalith::model {

// How many documents of a micro batch attention is given the bounds of, at most; 0: it has no use for bounds.
int64_t document_room(const StageRequest& request, const StagePlan& plan);
// Whether the rows of a micro batch are put in order for the embedding's backward pass.
bool orders_rows(const StageRequest& request, const StagePlan& plan);

// What a rank needs. The placement is that of its stage.
cost::MemoryTable memory_of_plan(const StageRequest& request, const StagePlan& plan,
                                 const parallel::Placement& placement, int64_t replica);

// What a rank of pipeline stage `stage` needs.
cost::MemoryTable memory_of_stage(const StageRequest& request, int64_t stage);

struct WorstRank {
  int64_t stage = 0;
  cost::MemoryTable table;
};
WorstRank memory_of_worst_rank(const StageRequest& request);

}  // namespace megalith::model
