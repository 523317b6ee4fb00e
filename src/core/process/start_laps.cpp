#include "core/process/start_laps.h"

#include <unistd.h>

#include <ctime>
#include <mutex>

#include "core/process/process_facts.h"

namespace megalith {

namespace {
struct Laps {
  std::mutex mutex;  // tests start several ranks in one process
  std::vector<std::pair<std::string, double>> ended;
  // Seconds since the machine started, by which the kernel counts when processes do.
  double mark = static_cast<double>(own_process().start_ticks) / static_cast<double>(::sysconf(_SC_CLK_TCK));
};

Laps& laps() {
  static Laps laps;
  return laps;
}

double boot_seconds() {
  timespec now{};
  ::clock_gettime(CLOCK_BOOTTIME, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}
}  // namespace

void end_start_lap(const char* what) {
  Laps& all = laps();
  const std::lock_guard lock(all.mutex);
  const double now = boot_seconds();
  all.ended.emplace_back(what, now - all.mark);
  all.mark = now;
}

std::vector<std::pair<std::string, double>> start_laps() {
  Laps& all = laps();
  const std::lock_guard lock(all.mutex);
  return all.ended;
}

}  // namespace megalith
