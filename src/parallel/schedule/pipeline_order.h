#pragma once

#include "parallel/schedule/schedule.h"

namespace megalith::parallel {

// What a stage of a pipeline computes in a step, in order, without the transfers in between.
Schedule pipeline_order(const Layout& layout, int64_t stage, int64_t micro_batches);

}  // namespace megalith::parallel
