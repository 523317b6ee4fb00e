#include "resilience/decide/placing.h"

#include <fmt/format.h>

#include <algorithm>

#include "resilience/decide/holdings.h"
#include "resilience/decide/scaling.h"

namespace megalith::resilience {

namespace {
// By index; null: nobody has this place any longer.
std::vector<const std::string*> kept_places(const RunState& state, int64_t count,
                                            const std::set<std::string>& replaced) {
  std::vector<const std::string*> places(static_cast<size_t>(count), nullptr);
  if (!state.roster) return places;
  for (const RosterNode& member : state.roster->nodes) {
    const auto node = state.nodes.find(member.node);
    const bool stays = node != state.nodes.end() && node->second.may_train() && node->second.is_clean &&
                       !replaced.contains(member.node);
    if (stays && member.index < count) places[static_cast<size_t>(member.index)] = &node->first;
  }
  return places;
}

std::vector<const std::string*> spares_beside(const RunState& state, const std::vector<const std::string*>& places,
                                              const std::set<std::string>& replaced) {
  std::vector<const std::string*> spares;
  for (const auto& [name, node] : state.nodes) {
    if (!node.may_train() || !node.is_clean || replaced.contains(name)) continue;
    if (std::find(places.begin(), places.end(), &name) == places.end()) spares.push_back(&name);
  }
  return spares;
}

// False where spares do not suffice.
bool fill(std::vector<const std::string*>& places, std::vector<const std::string*>& spares) {
  const auto holes = std::count(places.begin(), places.end(), nullptr);
  if (holes > static_cast<int64_t>(spares.size())) return false;
  auto spare = spares.begin();
  for (const std::string*& place : places) {
    if (place == nullptr) place = *spare++;
  }
  spares.erase(spares.begin(), spare);
  return true;
}

int64_t newest_step(const RunState& state, bool from_nodes_alone) {
  std::vector<std::vector<Holding>> held;
  for (const auto& [name, node] : state.nodes) {
    if (node.is_heard) held.push_back(node.holdings);
  }
  return newest_covered_step(held, [&](const Holding& holding) {
    if (from_nodes_alone && holding.tier == Tier::persistent) return false;
    const auto later = state.from_steps.upper_bound(holding.generation);
    return std::all_of(later, state.from_steps.end(), [&](const auto& entry) { return holding.step <= entry.second; });
  });
}

int64_t step_to_continue_from(Turn& turn) {
  const int64_t step = newest_step(turn.state, false);
  if (step >= 0 && newest_step(turn.state, true) < step) {
    turn.tell(fmt::format(
        "step {} is on the persistent tier alone: the memory and the disks of the nodes hold none so new", step));
  }
  return step;
}
}  // namespace

std::optional<Roster> place_ranks(Turn& turn) {
  RunState& state = turn.state;
  const int64_t count = nodes_to_place(state);
  if (count == 0) return std::nullopt;
  std::set<std::string> replaced = state.incident.suspects;
  std::vector<const std::string*> places = kept_places(state, count, replaced);
  std::vector<const std::string*> spares = spares_beside(state, places, replaced);
  if (!fill(places, spares)) {
    if (!replaced.empty()) turn.tell("the suspects stay: there are too few spares");
    replaced.clear();
    places = kept_places(state, count, replaced);
    spares = spares_beside(state, places, replaced);
    if (!fill(places, spares)) return std::nullopt;
  }
  for (const std::string& node : replaced) {
    put_out(turn, node, fmt::format("node {} was replaced: {}", node, state.incident.reason), false);
  }
  Roster roster{.run = state.settings.run,
                .term = state.term,
                .generation = std::max(state.newest + 1, state.settings.first_generation),
                .world_size = count * state.settings.ranks_per_node,
                .ranks_per_node = state.settings.ranks_per_node,
                .config = state.settings.config,
                .overrides = state.settings.overrides,
                .from_step = step_to_continue_from(turn),
                .reason = state.incident.reason,
                .budgets = state.budgets,
                .store_node = *places.front()};
  for (const std::string* name : places) {
    roster.nodes.push_back(
        {.node = *name, .index = static_cast<int64_t>(roster.nodes.size()), .address = state.nodes.at(*name).address});
  }
  for (const std::string* name : spares) roster.spares.push_back(*name);
  for (const auto& [name, node] : state.nodes) {
    if (!node.out.empty()) roster.out.push_back({.node = name, .reason = node.out});
  }
  ++roster.budgets.starts;
  state.fewer_nodes = count == state.settings.nodes ? 0 : count;
  return roster;
}

}  // namespace megalith::resilience
