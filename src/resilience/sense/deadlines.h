#pragma once

#include <array>
#include <deque>
#include <string>
#include <string_view>

#include "resilience/messages.h"
#include "resilience/settings.h"

namespace megalith::resilience {

// How long a rank may go without a beat, learned from the run. Seconds.
class Deadlines {
 public:
  explicit Deadlines(const Settings& settings) : settings_(settings) {}

  // The world has done steps in so many seconds each.
  void saw_steps(int64_t count, double seconds);
  // A rank has left a section after so many.
  void saw_section(Section section, double seconds);

  double without_beat(Section section) const;
  // Beats without a step: a livelock.
  double without_step() const { return 3.0 * without_beat(Section::step); }
  // Within a step somebody beats at least so often, while all is well.
  double between_beats() const;

  // "step=1.5x20 save=2.5": what a later generation begins with. take() ignores what it does not know.
  std::string to_text() const;
  void take(std::string_view text);

 private:
  static constexpr size_t kSteps = 20;
  static constexpr int64_t kWarmUpSteps = 5;

  const Settings& settings_;
  std::deque<double> steps_;
  int64_t steps_seen_ = 0;
  std::array<double, kSections> longest_{};  // 0: not seen
};

}  // namespace megalith::resilience
