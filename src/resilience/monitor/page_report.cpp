#include "resilience/monitor/page_report.h"

#include <algorithm>
#include <utility>

namespace megalith::resilience {

namespace {
static_assert(megalith::kSections == kSections, "both lists are the same");

EndingKind kind_of(const RankStatus::Ending& ending) {
  if (ending.outcome == RankStatus::Outcome::complete) return EndingKind::done;
  if (ending.outcome == RankStatus::Outcome::stopped_early) return EndingKind::stopped;
  switch (ending.kind) {
    case ErrorKind::user:
      return EndingKind::user;
    case ErrorKind::io:
      return EndingKind::io;
    case ErrorKind::data:
      return EndingKind::data;
    case ErrorKind::device:
      return EndingKind::device;
    case ErrorKind::comm:
      return EndingKind::comm;
    case ErrorKind::non_finite:
      return EndingKind::non_finite;
    case ErrorKind::internal:
      return EndingKind::internal;
  }
  return EndingKind::internal;
}

void add_calls(std::vector<GroupCalls>& all, const RankStatus::Group& group) {
  const std::string name = fmt::format("{}#{:016x}", group.name, group.members);
  const auto add = [&](const RankStatus::Calls& calls, bool exchanges) {
    if (calls.entered == 0 && exchanges) return;
    GroupCalls shown{.group = exchanges ? name + " exchanges" : name,
                     .operation = group.operation,
                     .entered = calls.entered,
                     .finished = calls.finished,
                     .bytes = group.bytes,
                     .exchanges = exchanges};
    for (const int peer : group.peers) {
      if (exchanges && peer >= 0) shown.peers.push_back(peer);
    }
    all.push_back(std::move(shown));
  };
  add(group.collectives, false);
  add(group.exchanges, true);
}
}  // namespace

PageReport page_report(const RankStatus& status, double now) {
  PageReport page{.section = static_cast<Section>(status.section),
                  .section_seconds = std::max(0.0, now - status.section_began),
                  .longest = status.longest,
                  .step = status.step,
                  .micro_batch = std::max<int64_t>(0, status.micro_batch),
                  .beats = status.beats,
                  .working_seconds = status.working_seconds,
                  .local_step = status.local_step,
                  .persistent_step = status.persistent_step};
  for (const RankStatus::Group& group : status.groups) add_calls(page.calls, group);
  if (status.ending) {
    page.ending = {.kind = kind_of(*status.ending),
                   .message = status.ending->message,
                   .ranks = {status.ending->ranks.begin(), status.ending->ranks.end()}};
  }
  return page;
}

}  // namespace megalith::resilience
