#pragma once

#include "data/batch.h"
#include "parallel/context_split.h"

namespace megalith::engine {

// What a context-parallel rank computes of a micro batch: of each sample the front and the back block of positions, as
// sequences of their own.
data::MicroBatch share_of(const data::MicroBatch& micro_batch, const parallel::ContextSplit& split);

}  // namespace megalith::engine
