#include "resilience/decide/phases.h"

#include <fmt/format.h>

#include <algorithm>

#include "resilience/decide/judge.h"
#include "resilience/decide/placing.h"
#include "resilience/decide/scaling.h"
#include "resilience/names.h"

namespace megalith::resilience {

namespace {
constexpr std::array<const char*, kRunPhases> kPhaseWords = {
    "gather", "stop", "check", "place", "wait", "claim", "start", "join", "load", "redo", "running", "finish", "over"};
constexpr double kTryAgain = 5.0;  // seconds
constexpr double kFinish = 10.0;   // for monitors to hear of the end
constexpr int64_t kStoppedEarly = 75;
constexpr int64_t kGaveUp = 70;

// Whether this phase waits for the node; start waits for those that have ranks.
bool is_asked(RunPhase phase, const NodeState& node) {
  switch (phase) {
    case RunPhase::check:
      return node.may_train() && node.is_clean;
    case RunPhase::place:
      return node.is_heard && node.is_clean;
    case RunPhase::stop:
    case RunPhase::finish:
      return node.is_heard;
    default:
      return false;
  }
}

template <class Visit>
void for_those_asked(Turn& turn, Visit visit) {
  if (turn.state.phase == RunPhase::start) {
    for (const RosterNode& member : turn.state.roster->nodes) visit(member.node, turn.state.nodes[member.node]);
    return;
  }
  for (auto& [name, node] : turn.state.nodes) {
    if (is_asked(turn.state.phase, node)) visit(name, node);
  }
}

bool all_have_answered(Turn& turn) {
  bool all = true;
  for_those_asked(turn, [&](const std::string&, const NodeState& node) { all = all && node.has_answered; });
  return all;
}

// Every node that has not answered has had so long for it.
bool time_is_up(Turn& turn, double seconds) {
  bool all = turn.guards.has_deadlines;
  for_those_asked(turn, [&](const std::string&, const NodeState& node) {
    all = all && (node.has_answered || turn.now - std::max(node.asked, turn.state.phase_began) >= seconds);
  });
  return all;
}

void give_orders(Turn& turn) {
  for_those_asked(turn, [&](const std::string& name, const NodeState&) { include(turn, name); });
}

void blame_the_silent(Turn& turn, Symptom symptom, const std::string& what) {
  std::vector<std::string> silent;
  for_those_asked(turn, [&](const std::string& name, const NodeState& node) {
    if (!node.has_answered) silent.push_back(name);
  });
  for (const std::string& name : silent) {
    take_fault(turn, {.kind = FactKind::fault,
                      .time = turn.now,
                      .node = name,
                      .generation = turn.state.generation(),
                      .symptom = symptom,
                      .evidence = fmt::format("node {} {}", name, what)});
  }
}

// Nodes that could not carry out their order may be able to a little later.
void order_anew_what_failed(Turn& turn) {
  for_those_asked(turn, [&](const std::string& name, NodeState& node) {
    if (node.has_answered || node.failed < 0 || turn.now - node.failed < kTryAgain) return;
    node.failed = turn.now;
    turn.decision.has_changed = true;
    include(turn, name);
  });
}

// Where some nodes failed and none could, it is not the nodes: the run directory is not there.
bool nobody_can(Turn& turn) {
  bool some_failed = false;
  bool some_can = false;
  for_those_asked(turn, [&](const std::string&, const NodeState& node) {
    some_failed = some_failed || node.failed >= 0;
    some_can = some_can || node.has_answered;
  });
  return some_failed && !some_can;
}

// Nothing can be known of a run whose monitors are all silent, and nothing can be done.
void give_up_if_deserted(Turn& turn) {
  const RunState& state = turn.state;
  const double patience = state.settings.workload_downtime_threshold;
  const bool is_deserted =
      std::all_of(state.roster->nodes.begin(), state.roster->nodes.end(), [&](const RosterNode& node) {
        const auto found = state.nodes.find(node.node);
        return found == state.nodes.end() || (!found->second.is_heard && turn.now - found->second.since >= patience);
      });
  if (is_deserted && turn.guards.has_deadlines) {
    conclude(turn, kGaveUp, fmt::format("no monitor of the run has been heard for {:.0f} s", patience));
  }
}

void put_the_silent_out(Turn& turn, const std::string& what) {
  std::vector<std::string> silent;
  for_those_asked(turn, [&](const std::string& name, const NodeState& node) {
    if (!node.has_answered) silent.push_back(name);
  });
  for (const std::string& name : silent) put_out(turn, name, fmt::format("node {} {}", name, what), false);
}

// Who is silent now cannot be asked for anything.
void put_out_who_is_not_heard(Turn& turn) {
  for (const auto& [name, node] : turn.state.nodes) {
    if (!node.is_heard && node.out.empty()) put_out(turn, name, fmt::format("node {} is silent", name), true);
  }
}

void after_stop(Turn& turn) {
  const Incident& incident = turn.state.incident;
  if (incident.stops) return conclude(turn, kStoppedEarly, "stopped on request");
  if (incident.gives_up) return conclude(turn, *incident.gives_up, incident.reason);
  enter(turn, incident.rung >= Rung::workload_restart ? RunPhase::check : RunPhase::place);
}

void claim(Turn& turn) {
  turn.state.next->term = turn.state.term;
  turn.decision.actions.push_back({.kind = Action::Kind::claim, .generation = turn.state.next->generation});
}

void place(Turn& turn) {
  RunState& state = turn.state;
  if (turn.now < state.resume_at) return;
  std::optional<Roster> roster = place_ranks(turn);
  if (!roster) return enter(turn, RunPhase::wait);
  state.next = *std::move(roster);
  enter(turn, RunPhase::claim);
}

void go_on_placing(Turn& turn) {
  if (all_have_answered(turn)) return place(turn);
  if (!time_is_up(turn, turn.state.settings.answer_timeout)) return;
  if (nobody_can(turn)) return enter(turn, RunPhase::place);
  put_the_silent_out(turn, fmt::format("did not say for {:.0f} s what it holds", turn.state.settings.answer_timeout));
  place(turn);
}

void go_on_waiting(Turn& turn) {
  RunState& state = turn.state;
  if (nodes_to_place(state) > 0) return after_stop(turn);
  const int64_t usable = usable_nodes(state);
  const double patience = state.roster
                              ? state.settings.workload_downtime_threshold
                              : std::max(state.settings.workload_downtime_threshold, state.settings.start_timeout);
  if (!turn.guards.has_deadlines || turn.now - state.incident.waiting_since < patience) return;
  if (const int64_t fewer = fewer_nodes_for(state.settings, usable); fewer > 0) {
    state.fewer_nodes = fewer;
    state.incident.reason += fmt::format("; {} of {} nodes after {:.0f} s: it goes on with {}", usable,
                                         state.settings.nodes, patience, fewer);
    turn.tell(state.incident.reason);
    return after_stop(turn);
  }
  state.incident.reason +=
      fmt::format("; no spare was left: {} of {} nodes after {:.0f} s", usable, state.settings.nodes, patience);
  conclude(turn, kGaveUp, state.incident.reason);
}

void go_on_starting(Turn& turn) {
  const Settings& settings = turn.state.settings;
  if (turn.state.store_is_ready && all_have_answered(turn)) return enter(turn, RunPhase::join);
  if (!turn.has_passed(settings.answer_timeout)) return;
  if (turn.state.store_is_ready) {
    return blame_the_silent(turn, Symptom::start_failed,
                            fmt::format("did not start its ranks for {:.0f} s", settings.answer_timeout));
  }
  const std::string& node = turn.state.roster->store_node;
  take_fault(turn,
             {.kind = FactKind::fault,
              .time = turn.now,
              .node = node,
              .generation = turn.state.generation(),
              .symptom = Symptom::start_failed,
              .evidence = fmt::format("node {} did not serve the store for {:.0f} s", node, settings.answer_timeout)});
}
}  // namespace

const char* name_of(RunPhase phase) {
  return word_of(kPhaseWords, phase);
}

void Turn::order(const std::string& node, OrderKind kind, int64_t generation, const std::string& reason) {
  decision.actions.push_back({.node = node,
                              .order = kind,
                              .generation = generation,
                              .exit_code = state.verdict.value_or(0),
                              .reason = reason});
}

void Turn::alarm(const std::string& reason) {
  decision.actions.push_back({.kind = Action::Kind::alarm, .reason = reason});
}

void Turn::tell(const std::string& line) {
  state.story.push_back(fmt::format("{:.1f} s, generation {}: {}", now, state.generation(), line));
  if (state.story.size() > RunState::kStory) state.story.erase(state.story.begin());
}

void enter(Turn& turn, RunPhase phase) {
  RunState& state = turn.state;
  state.phase = phase;
  state.phase_began = turn.now;
  turn.decision.has_changed = true;
  for (auto& [name, node] : state.nodes) {
    node.asked = node.failed = -1.0;
    node.has_answered = false;
  }
  switch (phase) {
    case RunPhase::stop:
      for (auto& [name, node] : state.nodes) node.is_clean = false;
      put_out_who_is_not_heard(turn);
      [[fallthrough]];
    case RunPhase::check:
    case RunPhase::place:
    case RunPhase::finish:
      give_orders(turn);
      return go_on(turn);
    case RunPhase::wait:
      if (state.incident.waiting_since < 0) {
        state.incident.waiting_since = turn.now;
        turn.alarm(
            fmt::format("{} of {} nodes are there: waiting for more", usable_nodes(state), state.settings.nodes));
      }
      return;
    case RunPhase::claim:
      return claim(turn);
    case RunPhase::start:
      state.store_is_ready = false;
      return turn.order(state.roster->store_node, OrderKind::serve_store, state.generation());
    case RunPhase::running:
      state.incident = {};
      return;
    default:
      return;
  }
}

// A node that comes later than the others is rid of its processes before it is asked for more.
void include(Turn& turn, const std::string& node) {
  RunState& state = turn.state;
  const std::string& reason = state.incident.reason;
  const bool comes_late = state.phase > RunPhase::stop && state.phase < RunPhase::start && !state.nodes[node].is_clean;
  if (comes_late) return turn.order(node, OrderKind::kill, state.newest, reason);
  double& asked = state.nodes[node].asked;
  if (asked < 0) asked = turn.now;
  switch (state.phase) {
    case RunPhase::stop:
      return turn.order(node, OrderKind::kill, state.newest, reason);
    case RunPhase::check:
      return turn.order(node, OrderKind::check, state.newest);
    case RunPhase::place:
      return turn.order(node, OrderKind::tell, state.newest);
    case RunPhase::finish:
      return turn.order(node, OrderKind::finish, state.newest, reason);
    default:
      return;
  }
}

void go_on(Turn& turn) {
  RunState& state = turn.state;
  const Settings& settings = state.settings;
  order_anew_what_failed(turn);
  switch (state.phase) {
    case RunPhase::gather:
      if (turn.now - state.phase_began >= settings.gather) judge(turn);
      return;
    case RunPhase::stop:
      if (!all_have_answered(turn)) {
        if (!time_is_up(turn, settings.stop_timeout)) return;
        if (nobody_can(turn)) return enter(turn, RunPhase::stop);
        put_the_silent_out(turn, fmt::format("did not get rid of its processes in {:.0f} s", settings.stop_timeout));
      }
      return after_stop(turn);
    case RunPhase::check:
      if (time_is_up(turn, settings.answer_timeout) || all_have_answered(turn)) enter(turn, RunPhase::place);
      return;
    case RunPhase::place:
      return go_on_placing(turn);
    case RunPhase::wait:
      return go_on_waiting(turn);
    case RunPhase::claim:
      if (!state.claim_problem.empty() && turn.now >= state.claim_again) {
        state.claim_problem.clear();
        turn.decision.has_changed = true;
        claim(turn);
      }
      return;
    case RunPhase::start:
      return go_on_starting(turn);
    case RunPhase::join:
      if (turn.has_passed(settings.start_timeout + settings.answer_timeout)) {
        take_fault(turn, {.kind = FactKind::fault,
                          .time = turn.now,
                          .generation = state.generation(),
                          .symptom = Symptom::start_failed,
                          .evidence = "the ranks have not met"});
        return;
      }
      return give_up_if_deserted(turn);
    case RunPhase::load:
    case RunPhase::redo:
    case RunPhase::running:
      return give_up_if_deserted(turn);
    case RunPhase::finish:
      if (all_have_answered(turn) || turn.has_passed(kFinish)) enter(turn, RunPhase::over);
      return;
    default:
      return;
  }
}

void resume(Turn& turn) {
  RunState& state = turn.state;
  state.settles_until = -1.0;
  turn.decision.has_changed = true;
  if (state.phase < RunPhase::start) put_out_who_is_not_heard(turn);
  switch (state.phase) {
    case RunPhase::gather:
    case RunPhase::claim:
    case RunPhase::finish:
      return enter(turn, state.phase);
    case RunPhase::stop:
    case RunPhase::check:
    case RunPhase::place:
    case RunPhase::wait:
      return enter(turn, RunPhase::stop);
    case RunPhase::start:
      return enter(turn, RunPhase::start);
    default:
      if (state.stop_requested) begin_to_stop(turn);
      return;
  }
}

void put_out(Turn& turn, const std::string& node, const std::string& evidence, bool returns) {
  NodeState& state = turn.state.nodes[node];
  if (!state.out.empty() && !state.returns_when_heard) return;
  turn.decision.has_changed = true;
  state.out = evidence;
  state.returns_when_heard = returns;
  turn.tell(fmt::format("node {} is out: {}", node, evidence));
}

void conclude(Turn& turn, int64_t exit_code, const std::string& reason) {
  turn.state.verdict = exit_code;
  turn.state.incident.reason = reason;
  turn.tell(fmt::format("the run ends with code {}: {}", exit_code, reason));
  enter(turn, RunPhase::finish);
}

void begin_to_stop(Turn& turn) {
  RunState& state = turn.state;
  turn.decision.has_changed = true;
  if (state.phase > RunPhase::running) return;
  if (state.phase >= RunPhase::join) {
    for (const RosterNode& node : state.roster->nodes) {
      turn.order(node.node, OrderKind::stop, state.generation(), "the run was asked to stop");
    }
    return;
  }
  state.incident.stops = true;
  enter(turn, RunPhase::stop);
}

void claimed(Turn& turn) {
  RunState& state = turn.state;
  state.roster = std::move(state.next);
  state.next.reset();
  state.newest = state.roster->generation;
  state.budgets = state.roster->budgets;
  state.from_steps[state.roster->generation] = state.roster->from_step;
  const int64_t again = state.best_step + 1 - std::max<int64_t>(0, state.roster->from_step);
  turn.tell(fmt::format("roster of {} nodes, from step {}{}", state.roster->nodes.size(), state.roster->from_step,
                        again > 0 ? fmt::format(", {} that the run has done are done again", again) : ""));
  state.phase = RunPhase::start;
}

}  // namespace megalith::resilience
