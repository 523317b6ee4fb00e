#pragma once

#include "core/stream.h"

namespace megalith::ops {

// For drills: work of this stream that never ends. On a GPU a kernel, and this returns; on a CPU it does not.
void compute_for_ever(Stream& stream);

namespace cuda {
void compute_for_ever(Stream& stream);
}

}  // namespace megalith::ops
