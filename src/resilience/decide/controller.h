#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "resilience/decide/state.h"

namespace megalith::resilience {

// What the controller wants done. The actuator does it.
struct Action {
  enum class Kind : uint8_t {
    order,  // `order` to `node`
    claim,  // RunState::next
    alarm,  // somebody should know of `reason`
  };
  Kind kind = Kind::order;
  std::string node;
  OrderKind order = OrderKind::greet;
  int64_t generation = 0;
  int64_t exit_code = 0;
  std::string reason;

  bool operator==(const Action&) const = default;
};

struct Decision {
  bool has_changed = false;  // the fact belongs in the journal
  std::vector<Action> actions;
};

// Guards that only tests of the simulation take out, to see that an invariant then breaks.
struct ControllerGuards {
  bool has_one_recovery = true;  // a fault within a recovery first ends what that recovery has begun
  bool blames_whom_evidence_names = true;
  bool has_deadlines = true;  // of phases
};

// The supervisor's mind: a pure function from a state and a fact to a state and actions. It knows no clock, thread,
// socket or file: time comes with facts. The state is changed in place, since that of 1,000 nodes is large; the same
// facts in the same order always give the same states and actions.
Decision decide(RunState& state, const Fact& fact, const ControllerGuards& guards = {});

}  // namespace megalith::resilience
