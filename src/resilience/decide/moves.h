#pragma once

#include <string>

#include "resilience/decide/phases.h"

namespace megalith::resilience {

// Moves that are planned: the ranks stop at the end of a step, and the next generation follows.

void plan_move(Turn& turn, const std::string& reason);
// As time passes: moves that the state asks for are planned, and the ranks are asked to stop as soon as they can be.
void go_on_with_moves(Turn& turn);
// The ranks have stopped for it.
void move(Turn& turn);

}  // namespace megalith::resilience
