#pragma once

#include <functional>

#include "config/run_config.h"

namespace megalith::observe {

// Opens a profiler's capture range on the steps and ranks that model.nsys_profile names.
class ProfileWindow {
 public:
  struct Profiler {
    std::function<void()> start;
    std::function<void()> stop;
  };
  // Without a profiler of its own: that of the GPU (core/trace.h).
  ProfileWindow(const config::NsysProfile& config, int64_t rank, Profiler profiler = gpu_profiler());
  // A window that is still open is closed.
  ~ProfileWindow();
  ProfileWindow(const ProfileWindow&) = delete;
  ProfileWindow& operator=(const ProfileWindow&) = delete;

  // Before step `step` begins.
  void before_step(int64_t step);
  bool is_open() const { return open_; }

  static Profiler gpu_profiler();

 private:
  void close();

  config::NsysProfile config_;
  bool wanted_;
  Profiler profiler_;
  bool open_ = false;
};

}  // namespace megalith::observe
