#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <mutex>
#include <optional>
#include <string>

namespace megalith::resilience {

// What threads have to say to people, for another thread to write down. Bounded, and the same words once a minute: a
// stranger who knocks a thousand times fills no log.
class Alarms {
 public:
  void add(const std::string& text);
  // The next one; nothing where there is none.
  std::optional<std::string> next();

 private:
  std::mutex mutex_;
  std::deque<std::string> waiting_;
  std::map<std::string, double> said_;  // when, in monotonic seconds
};

}  // namespace megalith::resilience
