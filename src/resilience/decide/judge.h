#pragma once

#include "resilience/decide/phases.h"

namespace megalith::resilience {

// A fault: it begins a recovery, or belongs to the one that is under way.
void take_fault(Turn& turn, const Fact& fault);
// Gather is over: what the faults ask for by the ladder and the budgets, and which nodes are out. Then the ranks are
// stopped.
void judge(Turn& turn);

}  // namespace megalith::resilience
