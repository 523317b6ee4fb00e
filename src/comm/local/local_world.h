#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "comm/world.h"

namespace megalith::comm {

// The worlds of `ranks` threads of this process, one for each. A rank whose world and groups are destroyed is dead to
// the others.
std::vector<std::unique_ptr<World>> make_local_worlds(int ranks);

// Runs body(world) on one thread per rank and returns when all have ended. What was thrown first is rethrown.
void run_local_ranks(int ranks, const std::function<void(World&)>& body);

}  // namespace megalith::comm
