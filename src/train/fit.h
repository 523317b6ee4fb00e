#pragma once

#include "model/memory_plan.h"

namespace megalith::train {

// A model that does not fit `available` bytes is refused with its memory table and the cheapest change that would make
// it fit.
void require_fit(const model::StageRequest& request, int64_t available);

}  // namespace megalith::train
