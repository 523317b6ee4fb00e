#pragma once

#include <algorithm>

namespace megalith::comm {

// The time of an emulated wire on the CPU: it stands still but when whoever holds it, or a call that is waited for,
// moves it on.
class WireClock {
 public:
  double now() const { return now_; }
  void advance(double seconds) { now_ += seconds; }
  void advance_to(double time) { now_ = std::max(now_, time); }

 private:
  double now_ = 0.0;
};

}  // namespace megalith::comm
