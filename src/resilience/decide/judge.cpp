#include "resilience/decide/judge.h"

#include <fmt/format.h>

#include <algorithm>

namespace megalith::resilience {

namespace {
constexpr size_t kFaultsKept = 256;
constexpr size_t kReasonLength = 600;
constexpr int64_t kGaveUp = 70;

std::string subject_of(const Fact& fault, Sameness same) {
  switch (same) {
    case Sameness::node:
      return fault.node;
    case Sameness::ranks:
      return fmt::format("{}", fmt::join(fault.ranks, ","));
    case Sameness::words:
      return fault.text;
    case Sameness::step:
      return fmt::format("{}", fault.step);
    case Sameness::anything:
      return "";
  }
  return "";
}

std::set<std::string> nodes_named(const RunState& state, const Fact& fault) {
  std::set<std::string> nodes;
  if (!fault.node.empty()) nodes.insert(fault.node);
  if (!state.roster) return nodes;
  for (const int64_t rank : fault.ranks) {
    if (rank >= 0 && rank < state.roster->world_size) nodes.insert(state.roster->node_of(rank).node);
  }
  return nodes;
}

// The nodes of all pipelines in which these ranks are.
std::set<std::string> pipelines_of(const RunState& state, const Fact& fault) {
  std::set<std::string> nodes = nodes_named(state, fault);
  const Roster& roster = *state.roster;
  const int64_t stride = std::max<int64_t>(1, roster.world_size / state.settings.pipeline_stages);
  for (const int64_t rank : fault.ranks) {
    if (rank < 0) continue;
    for (int64_t other = rank % stride; other < roster.world_size; other += stride)
      nodes.insert(roster.node_of(other).node);
  }
  return nodes;
}

bool has_spare(const RunState& state) {
  return std::any_of(state.nodes.begin(), state.nodes.end(), [&](const auto& entry) {
    return entry.second.may_train() && (!state.roster || state.roster->node(entry.first) == nullptr);
  });
}

// How often the same was there before.
size_t times_before(const RunState& state, Symptom symptom, const std::string& subject) {
  return static_cast<size_t>(std::count_if(state.past.begin(), state.past.end(), [&](const PastFault& past) {
    return past.symptom == symptom && past.subject == subject;
  }));
}

Rung climb(Turn& turn, const Fact& fault) {
  RunState& state = turn.state;
  const LadderRow& row = state.settings.ladder.row(fault.symptom);
  const std::string subject = subject_of(fault, row.same);
  const size_t times = times_before(state, fault.symptom, subject);
  state.past.push_back({.time = turn.now, .symptom = fault.symptom, .subject = subject});
  if (row.fatal_before_a_step && state.best_step < 0) return Rung::give_up;
  return row.rungs[std::min(times, row.rungs.size() - 1)];
}

// Of a new incident: a rung whose budget is used up is skipped.
Rung within_budgets(const RunState& state, Rung rung, bool names_a_node) {
  const Settings& settings = state.settings;
  if (rung == Rung::in_job_restart && state.budgets.in_job_restarts >= settings.max_in_job_restarts) {
    rung = Rung::workload_restart;
  }
  if (rung == Rung::workload_restart && state.budgets.workload_restarts >= settings.max_workload_restarts) {
    rung = names_a_node && has_spare(state) ? Rung::hot_swap : Rung::give_up;
  }
  return rung;
}

// A failed call is what a rank sees of another's end: it counts only where nothing else has happened.
std::vector<Fact> causes_among(const std::vector<Fact>& faults) {
  std::vector<Fact> causes;
  std::copy_if(faults.begin(), faults.end(), std::back_inserter(causes),
               [](const Fact& fault) { return fault.symptom != Symptom::call_failed; });
  if (causes.empty() && !faults.empty()) causes.push_back(faults.front());
  return causes;
}

std::set<std::string> blamed(const Turn& turn, const std::set<std::string>& named) {
  if (turn.guards.blames_whom_evidence_names || !turn.state.roster) return named;
  return {turn.state.roster->nodes.front().node};
}

void take_cause(Turn& turn, const Fact& fault) {
  RunState& state = turn.state;
  Incident& incident = state.incident;
  const LadderRow& row = state.settings.ladder.row(fault.symptom);
  const std::set<std::string> named = blamed(turn, nodes_named(state, fault));
  Rung rung = climb(turn, fault);
  const auto blamed_node = state.nodes.find(fault.node);
  const bool is_back =
      fault.symptom == Symptom::node_gone && blamed_node != state.nodes.end() && blamed_node->second.is_heard;
  if (is_back) rung = Rung::in_job_restart;
  if (!incident.is_charged) rung = within_budgets(state, rung, !named.empty());
  if (rung == Rung::give_up && !incident.gives_up) incident.gives_up = row.give_up_code;
  if (row.node_is_lost && !is_back) {
    const bool returns = fault.symptom == Symptom::node_gone;
    for (const std::string& node : named) put_out(turn, node, fault.evidence, returns);
  } else if (rung == Rung::hot_swap) {
    incident.suspects.insert(named.begin(), named.end());
  }
  if (state.budgets.starts >= state.settings.starts_before_eviction && state.roster && !fault.ranks.empty()) {
    const std::set<std::string> nodes = pipelines_of(state, fault);
    incident.suspects.insert(nodes.begin(), nodes.end());
  }
  if (fault.symptom == Symptom::load_failed && fault.step >= 0) {
    int64_t& from = state.from_steps[fault.generation];
    from = std::min(from, fault.step - 1);
  }
  incident.rung = std::max(incident.rung, rung);
  if (incident.reason.size() < kReasonLength) {
    incident.reason +=
        fmt::format("{}{}: {}", incident.reason.empty() ? "" : "; ", name_of(fault.symptom), fault.evidence);
  }
  turn.tell(fmt::format("{} ({}): {}", name_of(fault.symptom), fault.evidence, name_of(rung)));
}

void charge(RunState& state) {
  Incident& incident = state.incident;
  if (incident.is_charged) return;
  incident.is_charged = true;
  if (incident.rung == Rung::in_job_restart) ++state.budgets.in_job_restarts;
  if (incident.rung == Rung::workload_restart) ++state.budgets.workload_restarts;
}
}  // namespace

void take_fault(Turn& turn, const Fact& fault) {
  RunState& state = turn.state;
  const bool gathers = state.phase == RunPhase::gather;
  if (!gathers && !state.has_ranks()) return;
  if (fault.generation != state.generation()) return;
  turn.decision.has_changed = true;
  state.move.reset();  // the recovery takes in everybody who is there
  state.best_step = std::max(state.best_step, fault.number - 1);
  if (state.phase >= RunPhase::redo) {
    state.incident = {.began = turn.now, .reason = ""};
  }
  if (state.incident.faults.size() < kFaultsKept) state.incident.faults.push_back(fault);
  if (gathers) return;
  enter(turn, turn.guards.has_one_recovery || state.phase >= RunPhase::redo ? RunPhase::gather : RunPhase::place);
}

void judge(Turn& turn) {
  RunState& state = turn.state;
  std::erase_if(state.past, [&](const PastFault& past) { return turn.now - past.time > kRemembered; });
  const std::vector<Fact> causes = causes_among(state.incident.faults);
  for (const Fact& cause : causes) take_cause(turn, cause);
  if (!causes.empty()) {
    charge(state);
    if (state.budgets.starts >= state.settings.max_starts && !state.incident.gives_up) {
      state.incident.gives_up = kGaveUp;
      state.incident.reason += fmt::format("; {} starts without a new step", state.budgets.starts);
    }
    const auto restarts =
        static_cast<size_t>(std::max<int64_t>(0, state.budgets.starts - (state.best_step < 0 ? 1 : 0)));
    const std::vector<double>& pauses = state.settings.back_off;
    state.resume_at = pauses.empty() ? turn.now : turn.now + pauses[std::min(restarts, pauses.size() - 1)];
  }
  state.incident.faults.clear();
  if (state.stop_requested) state.incident.stops = true;
  enter(turn, RunPhase::stop);
}

}  // namespace megalith::resilience
