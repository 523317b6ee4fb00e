#pragma once

#include <cstdint>

#include "resilience/decide/state.h"

namespace megalith::resilience {

// With how many nodes a run goes on where it cannot have all: as many as make whole replicas and as the batch can be
// divided among. The global batch stays, so that no step knows how many nodes made it.

// Nodes that may get ranks.
int64_t usable_nodes(const RunState& state);
// How many get them next: all, or as many as can where a wait that was in vain has allowed fewer. 0: too few are there.
int64_t nodes_to_place(const RunState& state);
// The largest accepted number that `usable` nodes can make, below all of them. 0: none.
int64_t fewer_nodes_for(const Settings& settings, int64_t usable);
// Of a run that has fewer nodes than it could have had for Settings::scale_up_after: how many it could have. 0: no
// more.
int64_t nodes_to_grow_to(const RunState& state, double now);

}  // namespace megalith::resilience
