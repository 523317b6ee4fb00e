#pragma once

#include "parallel/placement/placement.h"

namespace megalith::parallel {

// What a rank's arenas must hold for its parameters, to the byte.
struct PlacementBytes {
  int64_t weights = 0;
  int64_t gradients = 0;
  int64_t remainders = 0;  // what bf16 weights lack of their masters; 0 for other weights
  int64_t moments = 0;
  int64_t update_table = 0;  // tiles and scalars of the optimizer
};
PlacementBytes bytes_of(const Placement& placement, DType compute, int64_t replica);

}  // namespace megalith::parallel
