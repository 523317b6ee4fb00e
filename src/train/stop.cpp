#include "train/stop.h"

#include <csignal>
#include <limits>

#include "core/clock.h"

namespace megalith::train {

namespace {
volatile std::sig_atomic_t received_signal = 0;

void on_signal(int signal) {
  received_signal = signal;
  std::signal(SIGTERM, SIG_DFL);
  std::signal(SIGINT, SIG_DFL);
}
}  // namespace

StopRequest::StopRequest(double time_limit)
    : deadline_(time_limit > 0.0 ? monotonic_seconds() + time_limit : std::numeric_limits<double>::infinity()) {
  received_signal = 0;
  std::signal(SIGTERM, on_signal);
  std::signal(SIGINT, on_signal);
}

StopRequest::~StopRequest() {
  std::signal(SIGTERM, SIG_DFL);
  std::signal(SIGINT, SIG_DFL);
}

std::string StopRequest::reason() const {
  if (received_signal == SIGTERM) return "SIGTERM";
  if (received_signal == SIGINT) return "SIGINT";
  if (monotonic_seconds() >= deadline_) return "trainer.max_time";
  return {};
}

}  // namespace megalith::train
