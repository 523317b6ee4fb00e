#include "train/stop.h"

#include <limits>

#include "core/clock.h"
#include "core/process/stop_signals.h"

namespace megalith::train {

StopRequest::StopRequest(double time_limit)
    : deadline_(time_limit > 0.0 ? monotonic_seconds() + time_limit : std::numeric_limits<double>::infinity()),
      took_signals_(!stop_signals::are_taken()) {
  if (took_signals_) stop_signals::take({});
  stop_signals::begin_running();
}

StopRequest::~StopRequest() {
  if (took_signals_) stop_signals::give_back();
}

std::string StopRequest::reason() const {
  std::string asked = stop_signals::reason();
  if (!asked.empty()) return asked;
  return monotonic_seconds() >= deadline_ ? "trainer.max_time" : "";
}

}  // namespace megalith::train
