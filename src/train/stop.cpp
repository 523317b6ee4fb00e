#include "train/stop.h"

#include <array>
#include <csignal>
#include <limits>
#include <utility>

#include "core/clock.h"

namespace megalith::train {

namespace {
volatile std::sig_atomic_t received_signal = 0;

constexpr std::array<std::pair<int, const char*>, 3> kSignals = {
    {{SIGTERM, "SIGTERM"}, {SIGINT, "SIGINT"}, {SIGUSR1, "SIGUSR1"}}};

void handle_signals(void (*handler)(int)) {
  for (const auto& [signal, name] : kSignals) std::signal(signal, handler);
}

void on_signal(int signal) {
  received_signal = signal;
  handle_signals(SIG_DFL);
}
}  // namespace

StopRequest::StopRequest(double time_limit)
    : deadline_(time_limit > 0.0 ? monotonic_seconds() + time_limit : std::numeric_limits<double>::infinity()) {
  received_signal = 0;
  handle_signals(on_signal);
}

StopRequest::~StopRequest() {
  handle_signals(SIG_DFL);
}

std::string StopRequest::reason() const {
  for (const auto& [signal, name] : kSignals) {
    if (received_signal == signal) return name;
  }
  if (monotonic_seconds() >= deadline_) return "trainer.max_time";
  return {};
}

}  // namespace megalith::train
