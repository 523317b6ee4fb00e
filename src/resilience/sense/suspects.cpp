#include "resilience/sense/suspects.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

namespace megalith::resilience {

namespace {
const GroupCalls* call_it_is_in(const RankView& view) {
  if (view.page == nullptr) return nullptr;
  for (const GroupCalls& calls : view.page->calls) {
    if (calls.is_inside()) return &calls;
  }
  return nullptr;
}

std::string where_it_is(const RankView& view) {
  std::string text = fmt::format("rank {}", view.rank);
  if (view.page != nullptr) {
    text += fmt::format(": section {}, step {}, no beat for {:.1f} s", name_of(view.page->section), view.page->step,
                        view.page->beat_seconds);
    if (const GroupCalls* const call = call_it_is_in(view)) {
      text += fmt::format(", in {} #{} of {}", call->operation, call->entered, call->group);
    }
  } else {
    text += ": no status page";
  }
  if (view.process != nullptr) {
    text += fmt::format(", process state {}", view.process->state);
    if (!view.process->wait_channel.empty()) text += fmt::format(" in {}", view.process->wait_channel);
    text += fmt::format(", {:.1f} s of CPU", view.process->cpu_seconds);
  }
  return text;
}

template <class Condition>
Suspicion those_who(std::span<const RankView> ranks, const char* rule, Condition condition) {
  Suspicion suspicion;
  for (const RankView& view : ranks) {
    if (!condition(view)) continue;
    suspicion.ranks.push_back(view.rank);
    // A few say enough; the pages of all are in the reports.
    if (suspicion.ranks.size() <= 4) {
      suspicion.evidence += fmt::format("{}{}", suspicion.evidence.empty() ? "" : "; ", where_it_is(view));
    }
  }
  if (!suspicion.ranks.empty()) suspicion.evidence = fmt::format("{} ({})", rule, suspicion.evidence);
  std::sort(suspicion.ranks.begin(), suspicion.ranks.end());
  return suspicion;
}

bool is_held_by_the_kernel(const RankView& view) {
  if (view.process == nullptr) return false;
  const char state = view.process->state;
  return state == 'T' || state == 't' || (state == 'D' && view.is_overdue);
}

// For whom each rank that is inside a call waits: in a collective for the members that have not entered it, in an
// exchange for its peers, unless they are in it too.
class Waits {
 public:
  explicit Waits(std::span<const RankView> ranks) {
    for (const RankView& view : ranks) {
      if (view.page == nullptr) continue;
      for (const GroupCalls& calls : view.page->calls) members_[calls.group].push_back({view.rank, &calls});
    }
    for (const RankView& view : ranks) {
      if (const GroupCalls* const call = call_it_is_in(view)) awaited_[view.rank] = awaited_in(view.rank, *call);
    }
  }

  // Others have entered a later call of a group than this rank.
  bool is_behind(const RankView& view) const {
    return std::any_of(awaited_.begin(), awaited_.end(),
                       [&](const auto& entry) { return entry.second.contains(view.rank); });
  }
  bool waits(int64_t rank) const {
    const auto found = awaited_.find(rank);
    return found != awaited_.end() && !found->second.empty();
  }
  bool is_inside(int64_t rank) const { return awaited_.contains(rank); }

 private:
  struct Member {
    int64_t rank;
    const GroupCalls* calls;
  };

  std::set<int64_t> awaited_in(int64_t rank, const GroupCalls& call) const {
    std::set<int64_t> awaited;
    for (const Member& other : members_.at(call.group)) {
      if (other.rank == rank || other.calls->exchanges != call.exchanges) continue;
      const bool is_peer = std::find(call.peers.begin(), call.peers.end(), other.rank) != call.peers.end();
      const bool lacks = call.exchanges ? is_peer && !other.calls->is_inside() : other.calls->entered < call.entered;
      if (lacks) awaited.insert(other.rank);
    }
    return awaited;
  }

  std::map<std::string, std::vector<Member>> members_;
  std::map<int64_t, std::set<int64_t>> awaited_;
};
}  // namespace

Suspicion find_suspects(std::span<const RankView> ranks) {
  Suspicion found = those_who(ranks, "stopped, or stuck in the kernel", is_held_by_the_kernel);
  if (!found.ranks.empty()) return found;
  const Waits waits(ranks);
  found = those_who(ranks, "not inside a call, and not beating",
                    [&](const RankView& view) { return view.is_overdue && !waits.is_inside(view.rank); });
  if (!found.ranks.empty()) return found;
  found = those_who(ranks, "behind in a group, and not inside a call",
                    [&](const RankView& view) { return waits.is_behind(view) && !waits.is_inside(view.rank); });
  if (!found.ranks.empty()) return found;
  return those_who(ranks, "the others wait for it, and it waits for nobody",
                   [&](const RankView& view) { return waits.is_behind(view) && !waits.waits(view.rank); });
}

}  // namespace megalith::resilience
