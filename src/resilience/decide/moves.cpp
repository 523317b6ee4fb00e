#include "resilience/decide/moves.h"

#include <fmt/format.h>

#include <utility>

#include "resilience/decide/scaling.h"

namespace megalith::resilience {

void plan_move(Turn& turn, const std::string& reason) {
  turn.decision.has_changed = true;
  turn.state.move = PlannedMove{.reason = reason};
  turn.tell(reason);
}

void go_on_with_moves(Turn& turn) {
  RunState& state = turn.state;
  if (state.is_settling() || state.stop_requested) return;
  if (const int64_t nodes = nodes_to_grow_to(state, turn.now); nodes > 0 && !state.move) {
    plan_move(turn, fmt::format("{} nodes are there again: on with them from the end of this step", nodes));
  }
  const bool trains = state.phase >= RunPhase::join && state.phase <= RunPhase::running;
  if (!trains || !state.move) return;
  if (!state.move->is_ordered) {
    turn.decision.has_changed = true;
    state.move->is_ordered = true;
    state.move->by = turn.now + state.settings.save_timeout;
    for (const RosterNode& node : state.roster->nodes)
      turn.order(node.node, OrderKind::stop, state.generation(), state.move->reason);
  } else if (turn.guards.has_deadlines && turn.now >= state.move->by) {
    turn.tell("the ranks have not stopped in time, and are killed");
    move(turn);
  }
}

void move(Turn& turn) {
  RunState& state = turn.state;
  const PlannedMove planned = *std::exchange(state.move, std::nullopt);
  // It costs no budget, and nobody waits: nothing has gone wrong.
  state.incident = {.began = turn.now, .rung = Rung::workload_restart, .reason = planned.reason, .is_charged = true};
  state.resume_at = turn.now;
  enter(turn, RunPhase::stop);
}

}  // namespace megalith::resilience
