#include "observe/sinks/profile_window.h"

#include <algorithm>

#include "core/trace.h"

namespace megalith::observe {

ProfileWindow::ProfileWindow(const config::NsysProfile& config, int64_t rank, Profiler profiler)
    : config_(config),
      wanted_(config.enabled && std::find(config.ranks.begin(), config.ranks.end(), rank) != config.ranks.end()),
      profiler_(std::move(profiler)) {}

ProfileWindow::~ProfileWindow() {
  close();
}

// As in NeMo: steps start_step to end_step, both included.
void ProfileWindow::before_step(int64_t step) {
  if (!wanted_) return;
  const bool inside = config_.start_step <= step && step <= config_.end_step;
  if (inside && !open_) {
    open_ = true;
    profiler_.start();
  } else if (!inside) {
    close();
  }
}

void ProfileWindow::close() {
  if (!open_) return;
  open_ = false;
  profiler_.stop();
}

ProfileWindow::Profiler ProfileWindow::gpu_profiler() {
  return {.start = start_profiler, .stop = stop_profiler};
}

}  // namespace megalith::observe
