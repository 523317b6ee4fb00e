#include "core/process/failpoint.h"

#include <atomic>
#include <charconv>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <map>
#include <mutex>
#include <thread>

#include "core/error.h"

namespace megalith {

namespace {
struct Armed {
  FailAction action;
  int64_t at;  // 0: every time
  int64_t passed = 0;
};

std::atomic<bool> any_armed{false};
std::mutex mutex;

std::map<std::string, Armed, std::less<>>& armed() {
  static std::map<std::string, Armed, std::less<>> places;
  return places;
}

FailAction parse_action(std::string_view name, std::string_view text) {
  if (name == "io") return FailAction::throw_io;
  if (name == "exit") return FailAction::exit;
  if (name == "delay") return FailAction::delay;
  if (name == "sigterm") return FailAction::sigterm;
  user_error("failpoint '{}': unknown action '{}' (io, exit, delay or sigterm)", text, name);
}
}  // namespace

void arm_failpoint(std::string_view text) {
  const size_t equals = text.find('=');
  if (equals == std::string_view::npos || equals == 0)
    user_error("failpoint '{}': write place=action or place=action@n", text);
  std::string_view action = text.substr(equals + 1);
  int64_t at = 0;
  if (const size_t sign = action.find('@'); sign != std::string_view::npos) {
    const std::string_view digits = action.substr(sign + 1);
    const auto [end, status] = std::from_chars(digits.data(), digits.data() + digits.size(), at);
    if (status != std::errc{} || end != digits.data() + digits.size() || at < 1) {
      user_error("failpoint '{}': '{}' is not a count", text, digits);
    }
    action = action.substr(0, sign);
  }
  const std::lock_guard lock(mutex);
  armed()[std::string(text.substr(0, equals))] = Armed{parse_action(action, text), at};
  any_armed = true;
}

void disarm_failpoints() {
  const std::lock_guard lock(mutex);
  armed().clear();
  any_armed = false;
}

void pass_failpoint(const char* place) {
  if (!any_armed.load(std::memory_order_relaxed)) return;
  FailAction action{};
  {
    const std::lock_guard lock(mutex);
    const auto found = armed().find(place);
    if (found == armed().end()) return;
    Armed& point = found->second;
    ++point.passed;
    if (point.at != 0 && point.passed != point.at) return;
    action = point.action;
  }
  switch (action) {
    case FailAction::throw_io:
      fail(ErrorKind::io, "failpoint {}: injected I/O error", place);
    case FailAction::exit:
      std::_Exit(1);
    case FailAction::delay:
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
      return;
    case FailAction::sigterm:
      std::raise(SIGTERM);
  }
}

}  // namespace megalith
