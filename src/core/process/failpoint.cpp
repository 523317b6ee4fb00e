#include "core/process/failpoint.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <charconv>
#include <chrono>
#include <cmath>
#include <csignal>
#include <cstdlib>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "core/clock.h"
#include "core/error.h"

namespace megalith {

namespace {
enum class Action { throw_io, throw_internal, delay, sleep, hang, spin, kernel, exit, exit0, abort, segv, sigterm };
constexpr std::array<std::pair<std::string_view, Action>, 12> kActions = {{{"io", Action::throw_io},
                                                                           {"throw", Action::throw_internal},
                                                                           {"delay", Action::delay},
                                                                           {"sleep", Action::sleep},
                                                                           {"hang", Action::hang},
                                                                           {"spin", Action::spin},
                                                                           {"kernel", Action::kernel},
                                                                           {"exit", Action::exit},
                                                                           {"exit0", Action::exit0},
                                                                           {"abort", Action::abort},
                                                                           {"segv", Action::segv},
                                                                           {"sigterm", Action::sigterm}}};

struct Fault {
  Action action = Action::throw_io;
  double seconds = 0.1;  // of delay and sleep
  std::optional<int64_t> rank;
  std::optional<int64_t> step;
  std::optional<int64_t> generation;
  int64_t at = 0;  // 0: every time
  int64_t passed = 0;
};

std::atomic<bool> any_armed{false};
std::atomic<int64_t> own_rank{-1};
std::atomic<int64_t> own_generation{0};
std::atomic<int64_t> own_step{-1};
std::mutex mutex;

std::map<std::string, std::vector<Fault>, std::less<>>& armed() {
  static std::map<std::string, std::vector<Fault>, std::less<>> places;
  return places;
}

// Up to the separator, which is taken off `rest` as well; everything where there is none.
std::string_view take_until(std::string_view& rest, char separator) {
  const size_t end = std::min(rest.find(separator), rest.size());
  const std::string_view taken = rest.substr(0, end);
  rest.remove_prefix(std::min(rest.size(), end + 1));
  return taken;
}

int64_t parse_count(std::string_view digits, int64_t least, std::string_view text) {
  int64_t number = 0;
  const auto [end, status] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  if (status != std::errc{} || end != digits.data() + digits.size() || number < least)
    user_error("failpoint '{}': '{}' is not a count from {}", text, digits, least);
  return number;
}

void parse_action(std::string_view words, std::string_view text, Fault& fault) {
  const std::string_view name = take_until(words, '=');
  for (const auto& [known, action] : kActions) {
    if (name == known) {
      fault.action = action;
      if ((action == Action::sleep) == words.empty())
        user_error("failpoint '{}': sleep takes seconds (sleep=2.5), other actions nothing", text);
      if (words.empty()) return;
      const auto [end, status] = std::from_chars(words.data(), words.data() + words.size(), fault.seconds);
      if (status != std::errc{} || end != words.data() + words.size() ||
          !(fault.seconds >= 0.0 && fault.seconds <= 1e6))
        user_error("failpoint '{}': '{}' are no seconds", text, words);
      return;
    }
  }
  std::string names;
  for (const auto& [known, action] : kActions) names += (names.empty() ? "" : ", ") + std::string(known);
  user_error("failpoint '{}': unknown action '{}' ({})", text, name, names);
}

void parse_condition(std::string_view condition, std::string_view text, Fault& fault) {
  if (condition.find('=') == std::string_view::npos) {
    fault.at = parse_count(condition, 1, text);
    return;
  }
  const std::string_view name = take_until(condition, '=');
  const int64_t number = parse_count(condition, 0, text);
  if (name == "rank") {
    fault.rank = number;
  } else if (name == "step") {
    fault.step = number;
  } else if (name == "generation") {
    fault.generation = number;
  } else {
    user_error("failpoint '{}': unknown condition '{}' (rank, step, generation, or a count)", text, name);
  }
}

bool aims_here(const Fault& fault) {
  return fault.rank.value_or(own_rank) == own_rank && fault.step.value_or(own_step) == own_step &&
         fault.generation.value_or(own_generation) == own_generation;
}

// Nothing: the place is passed unharmed.
std::optional<Fault> due_at(std::string_view place) {
  const std::lock_guard lock(mutex);
  const auto found = armed().find(place);
  if (found == armed().end()) return std::nullopt;
  for (Fault& fault : found->second) {
    if (aims_here(fault) && (++fault.passed == fault.at || fault.at == 0)) return fault;
  }
  return std::nullopt;
}

[[noreturn]] void hang() {
  while (true) std::this_thread::sleep_for(std::chrono::hours(1));
}

[[noreturn]] void spin() {
  static std::atomic<bool> over{false};
  while (!over.load(std::memory_order_relaxed)) {
  }
  std::abort();
}

// Also where a handler is set: a debugger's, a sanitizer's.
[[noreturn]] void end_by(int signal) {
  std::signal(signal, SIG_DFL);
  std::raise(signal);
  std::abort();
}

// By a single call, and flushed by none: what follows gives nobody the time.
void say(const Fault& fault, const char* place) {
  const auto known =
      std::find_if(kActions.begin(), kActions.end(), [&](const auto& action) { return action.second == fault.action; });
  const std::string line = fmt::format("failpoint {}: {} at {:.6f}\n", place, known->first, monotonic_seconds());
  [[maybe_unused]] const ssize_t put = ::write(STDERR_FILENO, line.data(), line.size());
}

void act(const Fault& fault, const char* place) {
  const bool pauses = fault.action == Action::delay || fault.action == Action::sleep;
  if (!pauses) say(fault, place);
  switch (fault.action) {
    case Action::throw_io:
      fail(ErrorKind::io, "failpoint {}: injected I/O error", place);
    case Action::throw_internal:
      fail(ErrorKind::internal, "failpoint {}: injected exception", place);
    case Action::delay:
    case Action::sleep:
      std::this_thread::sleep_for(std::chrono::duration<double>(fault.seconds));
      return;
    case Action::hang:
      hang();
    case Action::spin:
      spin();
    case Action::kernel:
      return;
    case Action::exit:
      std::_Exit(1);
    case Action::exit0:
      std::_Exit(0);
    case Action::abort:
      end_by(SIGABRT);
    case Action::segv:
      end_by(SIGSEGV);
    case Action::sigterm:
      std::raise(SIGTERM);
  }
}
}  // namespace

void arm_failpoint(std::string_view text) {
  std::string_view rest = text;
  const std::string_view place = take_until(rest, '=');
  if (place.empty() || rest.empty()) {
    user_error("failpoint '{}': write place=action, place=action@n or place=action@rank=R,step=S,generation=G", text);
  }
  Fault fault;
  bool has_more = rest.find('@') != std::string_view::npos;
  parse_action(take_until(rest, '@'), text, fault);
  while (has_more) {
    has_more = rest.find(',') != std::string_view::npos;
    parse_condition(take_until(rest, ','), text, fault);
  }
  const std::lock_guard lock(mutex);
  armed()[std::string(place)].push_back(fault);
  any_armed = true;
}

void arm_failpoints(std::string_view texts, std::string_view prefix) {
  while (!texts.empty()) {
    const std::string_view text = take_until(texts, ';');
    if (!text.empty() && text.starts_with(prefix)) arm_failpoint(text);
  }
}

void disarm_failpoints() {
  const std::lock_guard lock(mutex);
  armed().clear();
  any_armed = false;
}

void set_failpoint_rank(int64_t rank, int64_t generation) {
  own_rank = rank;
  own_generation = generation;
}

void set_failpoint_step(int64_t step) {
  own_step.store(step, std::memory_order_relaxed);
}

bool pass_failpoint(const char* place) {
  if (!any_armed.load(std::memory_order_relaxed)) return false;
  const std::optional<Fault> fault = due_at(place);
  if (fault) act(*fault, place);
  return fault && fault->action == Action::kernel;
}

}  // namespace megalith
