#pragma once

#include <vector>

#include "parallel/placement.h"

namespace megalith::parallel {

struct OwnedBox {
  int rank = 0;
  Box box;
};

// Who gives which part of the weights and optimizer state of each logical parameter to a checkpoint: boxes that
// together are the whole, each from one rank that holds and updates it. In the order of the table; of each rank in the
// order of its own tensor.
std::vector<std::vector<OwnedBox>> owners_of_state(const PlacementRequest& request);

}  // namespace megalith::parallel
