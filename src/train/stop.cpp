#include "train/stop.h"

#include <limits>

#include "core/clock.h"
#include "core/process/stop_signals.h"

namespace megalith::train {

StopRequest::StopRequest(double time_limit, const StatusPage& page)
    : deadline_(time_limit > 0.0 ? monotonic_seconds() + time_limit : std::numeric_limits<double>::infinity()),
      page_(page),
      took_signals_(!stop_signals::are_taken()) {
  if (took_signals_) stop_signals::take({});
  stop_signals::begin_running();
}

StopRequest::~StopRequest() {
  if (took_signals_) stop_signals::give_back();
}

std::string StopRequest::reason() const {
  if (page_.stop_is_asked()) return "the monitor";
  std::string asked = stop_signals::reason();
  if (!asked.empty()) return asked;
  return monotonic_seconds() >= deadline_ ? "trainer.max_time" : "";
}

}  // namespace megalith::train
