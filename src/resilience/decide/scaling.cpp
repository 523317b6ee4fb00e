#include "resilience/decide/scaling.h"

#include <algorithm>

namespace megalith::resilience {

namespace {
template <class IsUsable>
int64_t count_nodes(const RunState& state, IsUsable is_usable) {
  return std::count_if(state.nodes.begin(), state.nodes.end(),
                       [&](const auto& entry) { return entry.second.may_train() && is_usable(entry.second); });
}
}  // namespace

int64_t usable_nodes(const RunState& state) {
  return count_nodes(state, [](const NodeState& node) { return node.is_clean; });
}

int64_t nodes_to_place(const RunState& state) {
  const int64_t usable = usable_nodes(state);
  if (usable >= state.settings.nodes) return state.settings.nodes;
  if (state.fewer_nodes == 0) return 0;
  const int64_t fewer = fewer_nodes_for(state.settings, usable);
  return fewer >= state.fewer_nodes ? fewer : 0;
}

int64_t fewer_nodes_for(const Settings& settings, int64_t usable) {
  for (const int64_t nodes : settings.fewer_nodes) {
    if (nodes <= usable) return nodes;
  }
  return 0;
}

int64_t nodes_to_grow_to(const RunState& state, double now) {
  if (state.phase != RunPhase::running || state.fewer_nodes == 0) return 0;
  const int64_t ready =
      count_nodes(state, [&](const NodeState& node) { return now - node.since >= state.settings.scale_up_after; });
  const int64_t nodes = ready >= state.settings.nodes ? state.settings.nodes : fewer_nodes_for(state.settings, ready);
  return nodes > static_cast<int64_t>(state.roster->nodes.size()) ? nodes : 0;
}

}  // namespace megalith::resilience
