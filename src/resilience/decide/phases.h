#pragma once

#include <string>

#include "resilience/decide/controller.h"

namespace megalith::resilience {

// One step of the controller: what holds while it takes one fact.
struct Turn {
  RunState& state;
  double now;
  const ControllerGuards& guards;
  Decision decision = {};

  void order(const std::string& node, OrderKind kind, int64_t generation, const std::string& reason = "");
  void alarm(const std::string& reason);
  void tell(const std::string& line);  // for the story
  bool has_passed(double seconds) const { return guards.has_deadlines && now - state.phase_began >= seconds; }
};

// What a phase does when it begins, when its nodes have answered, and when its time is up.
void enter(Turn& turn, RunPhase phase);
void go_on(Turn& turn);   // after an answer, or when time has passed
void resume(Turn& turn);  // a new leader has listened long enough
// The orders of this phase, to a node that was not heard when it began.
void include(Turn& turn, const std::string& node);
// Puts a node out. `returns`: until it is heard again.
void put_out(Turn& turn, const std::string& node, const std::string& evidence, bool returns);
// The end of the run, with this exit code.
void conclude(Turn& turn, int64_t exit_code, const std::string& reason);
void begin_to_stop(Turn& turn);
void claimed(Turn& turn);

}  // namespace megalith::resilience
