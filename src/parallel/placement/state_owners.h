#pragma once

#include <vector>

#include "parallel/placement/placement.h"

namespace megalith::parallel {

struct OwnedBox {
  int rank = 0;
  Box box;
};

// Who gives which part of the weights and optimizer state of each logical parameter to a checkpoint: boxes that
// together are the whole, each from one rank that holds and updates it, and as evenly as whole rows allow. In the order
// of the table.
std::vector<std::vector<OwnedBox>> owners_of_state(const PlacementRequest& request);

}  // namespace megalith::parallel
