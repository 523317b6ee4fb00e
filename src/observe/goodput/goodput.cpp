#include "observe/goodput/goodput.h"

#include <algorithm>
#include <limits>

namespace megalith::observe {

namespace {
bool is_counted(RunEventKind kind) {
  switch (kind) {
    case RunEventKind::scheduled:
    case RunEventKind::started:
    case RunEventKind::loaded:
    case RunEventKind::saved:
    case RunEventKind::stopped:
    case RunEventKind::terminated:
      return true;
    default:
      return false;
  }
}
}  // namespace

Goodput measure_goodput(const RunEvents& log, std::optional<double> reference_step_time) {
  Goodput goodput{.has_reference = reference_step_time.has_value()};
  std::optional<RunEvent> first;
  std::optional<RunEvent> last;
  int64_t min_loaded = std::numeric_limits<int64_t>::max();
  int64_t max_saved = 0;
  for (const RunEvent& event : log.events) {
    if (!is_counted(event.kind)) continue;
    if (!first) first = event;
    const bool of_many_nodes = event.kind == RunEventKind::started || event.kind == RunEventKind::terminated;
    const bool again = of_many_nodes && last && last->kind == event.kind;
    last = event;
    if (again) continue;
    ++goodput.events;
    if (event.kind == RunEventKind::started) ++goodput.starts;
    if (event.kind == RunEventKind::loaded) {
      if (event.step > 0) ++goodput.loads;
      min_loaded = std::min(min_loaded, event.step);
    }
    if (event.kind == RunEventKind::saved) {
      ++goodput.saves;
      max_saved = std::max(max_saved, event.step);
    }
  }
  if (!first) return goodput;
  // A job that nobody scheduled counts as scheduled when it was first heard of.
  if (first->kind != RunEventKind::scheduled) ++goodput.events;
  goodput.runtime_seconds = static_cast<double>(last->micros - first->micros) / 1e6;
  if (reference_step_time && max_saved > min_loaded) {
    goodput.progress = {.min_loaded_step = min_loaded,
                        .max_saved_step = max_saved,
                        .effective_seconds = static_cast<double>(max_saved - min_loaded) * *reference_step_time};
  }
  return goodput;
}

}  // namespace megalith::observe
