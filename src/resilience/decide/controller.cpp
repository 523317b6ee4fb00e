#include "resilience/decide/controller.h"

#include <fmt/format.h>

#include <algorithm>

#include "resilience/decide/holdings.h"
#include "resilience/decide/judge.h"
#include "resilience/decide/moves.h"
#include "resilience/decide/phases.h"

namespace megalith::resilience {

namespace {
void take_lead(Turn& turn, const Fact& fact) {
  RunState& state = turn.state;
  state.settings = parse_settings(fact.text, "lead");
  state.term = fact.number;
  state.newest = std::max(state.newest, fact.generation);
  state.settles_until = turn.now + state.settings.settle;
  for (auto& [name, node] : state.nodes) {
    node.is_heard = node.is_clean = node.has_answered = false;
    node.asked = node.failed = -1.0;
    node.since = turn.now;
  }
  const bool is_new_fleet = fact.evidence == kNewFleet;
  if (is_new_fleet) {
    state.stop_requested = state.incident.stops = false;
    state.move.reset();
  }
  if (state.move) state.move->is_ordered = false;
  if (state.phase == RunPhase::over || (is_new_fleet && state.phase == RunPhase::finish)) {  // it is started once more
    RunState again{.settings = state.settings,
                   .term = state.term,
                   .newest = state.newest,
                   .settles_until = state.settles_until,
                   .roster = state.roster,
                   .from_steps = state.from_steps,
                   .learned = state.learned};
    state = std::move(again);
  }
  if (state.phase == RunPhase::claim && state.next) {
    if (fact.generation == state.next->generation && fact.digest == digest_of(*state.next)) {
      claimed(turn);
    } else if (fact.generation >= state.next->generation) {
      state.phase = RunPhase::stop;
    }
  }
  state.phase_began = turn.now;
}

void take_heard(Turn& turn, const Fact& fact) {
  RunState& state = turn.state;
  NodeState& node = state.nodes[fact.node];
  node.address = fact.text;
  node.boot_id = fact.digest;
  node.is_heard = true;
  node.is_clean = false;
  node.since = turn.now;
  if (node.returns_when_heard) {
    node.out.clear();
    node.returns_when_heard = false;
  }
  if (state.is_settling()) return;
  if (!node.has_answered && node.asked < 0) include(turn, fact.node);
  // What a node that was cut off still runs is of no use to anybody.
  const bool is_member = state.roster && state.roster->node(fact.node) != nullptr;
  if (state.has_ranks() && !is_member)
    turn.order(fact.node, OrderKind::kill, state.generation() - 1, "it was replaced");
}

void take_silent(Turn& turn, const Fact& fact) {
  RunState& state = turn.state;
  const auto found = state.nodes.find(fact.node);
  if (found == state.nodes.end() || !found->second.is_heard) {
    turn.decision.has_changed = false;
    return;
  }
  NodeState& node = found->second;
  node.is_heard = false;
  node.since = turn.now;
  if (state.is_settling()) return;
  const bool is_member = state.roster && state.roster->node(fact.node) != nullptr;
  if (state.has_ranks() || state.phase == RunPhase::gather) {
    if (state.phase != RunPhase::start || !is_member) return;
    return take_fault(turn, {.kind = FactKind::fault,
                             .time = turn.now,
                             .node = fact.node,
                             .generation = state.generation(),
                             .symptom = Symptom::start_failed,
                             .evidence = fact.evidence});
  }
  if (state.phase < RunPhase::finish) put_out(turn, fact.node, fact.evidence, true);
  go_on(turn);
}

void take_answer(Turn& turn, const Fact& fact) {
  RunState& state = turn.state;
  const auto found = state.nodes.find(fact.node);
  if (found == state.nodes.end()) return;
  const std::string expected = [&] {
    switch (state.phase) {
      case RunPhase::stop:
        return name_of(OrderKind::kill);
      case RunPhase::check:
        return name_of(OrderKind::check);
      case RunPhase::place:
        return name_of(OrderKind::tell);
      case RunPhase::start:
        return name_of(OrderKind::start);
      case RunPhase::finish:
        return name_of(OrderKind::finish);
      default:
        return "";
    }
  }();
  const bool is_late_kill = fact.kind == FactKind::order_done && fact.order == name_of(OrderKind::kill) &&
                            state.phase > RunPhase::stop && state.phase < RunPhase::start && !found->second.is_clean;
  if (is_late_kill) {
    found->second.is_clean = true;
    return include(turn, fact.node);
  }
  if (fact.order != expected) {
    turn.decision.has_changed = false;
    return;
  }
  found->second.has_answered = fact.kind != FactKind::order_failed;
  found->second.failed = fact.kind == FactKind::order_failed ? turn.now : -1.0;
  if (state.phase == RunPhase::stop) found->second.is_clean = found->second.has_answered;
  go_on(turn);
}

void take_failure(Turn& turn, const Fact& fact) {
  turn.alarm(fmt::format("node {} could not {}: {}", fact.node, fact.order, fact.evidence));
  const bool starts = fact.order == name_of(OrderKind::start) || fact.order == name_of(OrderKind::serve_store);
  if (!starts) return take_answer(turn, fact);
  if (turn.state.phase != RunPhase::start || fact.generation != turn.state.generation()) return;
  take_fault(turn, {.kind = FactKind::fault,
                    .time = turn.now,
                    .node = fact.node,
                    .generation = fact.generation,
                    .symptom = Symptom::start_failed,
                    .evidence = fmt::format("node {}: {}", fact.node, fact.evidence)});
}

void take_check(Turn& turn, const Fact& fact) {
  if (fact.number == static_cast<int64_t>(CheckOutcome::failed) && turn.state.phase == RunPhase::check) {
    put_out(turn, fact.node, fmt::format("node {} failed its checks: {}", fact.node, fact.evidence), false);
  }
  take_answer(turn, fact);
}

void take_holdings(Turn& turn, const Fact& fact) {
  const auto node = turn.state.nodes.find(fact.node);
  if (node == turn.state.nodes.end()) return;
  if (turn.state.phase == RunPhase::place) {
    node->second.holdings = parse_holdings(fact.text).value_or(std::vector<Holding>{});
  }
  take_answer(turn, fact);
}

void take_store(Turn& turn, const Fact& fact) {
  RunState& state = turn.state;
  if (state.phase != RunPhase::start || fact.generation != state.generation() || state.store_is_ready) return;
  state.store_is_ready = true;
  for (const RosterNode& node : state.roster->nodes) {
    turn.order(node.node, OrderKind::start, state.generation(), state.roster->reason);
  }
}

void take_claim(Turn& turn, const Fact& fact) {
  RunState& state = turn.state;
  if (state.phase != RunPhase::claim) return;
  if (fact.kind == FactKind::claimed) {
    claimed(turn);
    return enter(turn, RunPhase::start);
  }
  if (fact.kind == FactKind::claim_conflict) {
    state.newest = std::max(state.newest, fact.generation);
    return enter(turn, RunPhase::stop);
  }
  constexpr double kClaimAgain = 5.0;
  state.claim_problem = fact.evidence;
  state.claim_again = turn.now + kClaimAgain;
  turn.alarm(fmt::format("the roster of generation {} cannot be written, the recovery waits: {}",
                         state.next->generation, fact.evidence));
}

// What the ranks of the newest generation have come to. True where the fact is about them.
bool take_progress(Turn& turn, const Fact& fact) {
  RunState& state = turn.state;
  const bool is_theirs = fact.generation == state.generation() && state.has_ranks();
  switch (fact.kind) {
    case FactKind::joined:
      if (is_theirs && state.phase == RunPhase::join) enter(turn, RunPhase::load);
      return true;
    case FactKind::loaded:
      if (is_theirs && state.phase >= RunPhase::join && state.phase < RunPhase::redo) enter(turn, RunPhase::redo);
      return true;
    case FactKind::progress:
      if (!is_theirs || fact.step <= state.best_step) return true;
      state.best_step = fact.step;
      state.budgets = {};
      if (state.phase >= RunPhase::join && state.phase < RunPhase::running) enter(turn, RunPhase::running);
      return true;
    case FactKind::completed:
      if (is_theirs) conclude(turn, 0, "all steps are done");
      return true;
    case FactKind::stopped:
      if (is_theirs && state.move && !state.stop_requested) {
        move(turn);
      } else if (is_theirs) {
        conclude(turn, 75, "stopped early, and saved");
      }
      return true;
    default:
      return false;
  }
}

void take_stop_request(Turn& turn, const Fact& fact) {
  RunState& state = turn.state;
  if (state.stop_requested) {
    turn.decision.has_changed = false;
    return;
  }
  state.stop_requested = true;
  state.stop_by = turn.now + (fact.seconds > 0 ? fact.seconds : state.settings.save_timeout);
  turn.tell("asked to stop: " + fact.evidence);
  if (!state.is_settling()) begin_to_stop(turn);
}

void take_tick(Turn& turn) {
  RunState& state = turn.state;
  turn.decision.has_changed = false;
  if (state.is_settling()) {
    const bool all_heard = state.roster && std::all_of(state.nodes.begin(), state.nodes.end(), [](const auto& node) {
                             return node.second.is_heard || !node.second.out.empty();
                           });
    if (all_heard || turn.now >= state.settles_until) resume(turn);
    return;
  }
  if (state.stop_requested && state.has_ranks() && turn.guards.has_deadlines && turn.now >= state.stop_by) {
    state.incident.stops = true;
    turn.tell("the ranks have not stopped in time");
    return enter(turn, RunPhase::stop);
  }
  go_on_with_moves(turn);
  go_on(turn);
}

void take(Turn& turn, const Fact& fact) {
  switch (fact.kind) {
    case FactKind::lead:
      return take_lead(turn, fact);
    case FactKind::heard:
      return take_heard(turn, fact);
    case FactKind::silent:
      return take_silent(turn, fact);
    case FactKind::fault:
      turn.decision.has_changed = false;
      return take_fault(turn, fact);
    case FactKind::overdue:
      if (!turn.state.has_ranks()) return;
      for (const RosterNode& node : turn.state.roster->nodes) {
        turn.order(node.node, OrderKind::inspect, turn.state.generation(), fact.evidence);
      }
      return;
    case FactKind::learned:
      turn.state.learned = fact.text;
      return;
    case FactKind::order_done:
      return take_answer(turn, fact);
    case FactKind::order_failed:
      return take_failure(turn, fact);
    case FactKind::checked:
      return take_check(turn, fact);
    case FactKind::holdings:
      return take_holdings(turn, fact);
    case FactKind::store_ready:
      return take_store(turn, fact);
    case FactKind::claimed:
    case FactKind::claim_conflict:
    case FactKind::claim_failed:
      return take_claim(turn, fact);
    case FactKind::stop_requested:
      return take_stop_request(turn, fact);
    case FactKind::tick:
      return take_tick(turn);
    default:
      take_progress(turn, fact);
  }
}
}  // namespace

Decision decide(RunState& state, const Fact& fact, const ControllerGuards& guards) {
  Turn turn{.state = state, .now = fact.time, .guards = guards, .decision = {.has_changed = true}};
  take(turn, fact);
  return std::move(turn.decision);
}

}  // namespace megalith::resilience
