#pragma once

#include <span>

#include "comm/communicator.h"

namespace megalith::comm {

// output[i] = pieces[0][i] op pieces[1][i] op ..., in this order; bf16 is widened to fp32 and rounded once. A maximum
// with a NaN is NaN. `output` may be one of the pieces.
void reduce(Reduction reduction, DType dtype, std::span<const void* const> pieces, void* output, int64_t elements);

}  // namespace megalith::comm
