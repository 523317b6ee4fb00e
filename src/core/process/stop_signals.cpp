#include "core/process/stop_signals.h"

#include <pthread.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <ctime>

#include "core/clock.h"
#include "core/process/exit_codes.h"
#include "core/process/launcher_line.h"

namespace megalith {

namespace {
// Enough for the longest notice.
class NoticeText {
 public:
  void append(const char* text) {
    const size_t count = std::min(std::strlen(text), sizeof text_ - size_);
    std::memcpy(text_ + size_, text, count);
    size_ += count;
  }
  void write_to(int descriptor) const { [[maybe_unused]] const ssize_t count = ::write(descriptor, text_, size_); }

 private:
  char text_[256];
  size_t size_ = 0;
};

sigset_t stop_signal_set() {
  sigset_t set{};
  sigemptyset(&set);
  for (const auto& [signal, name] : kStopSignals) sigaddset(&set, signal);
  return set;
}

std::atomic<pthread_t> awaiting_thread{};
static_assert(std::atomic<pthread_t>::is_always_lock_free);
void hand_on(int signal) {
  ::pthread_kill(awaiting_thread.load(std::memory_order_relaxed), signal);
}

struct State {
  std::atomic<LauncherLine*> launcher = nullptr;
  std::atomic<bool> is_taken = false;
  std::atomic<bool> speaks = false;
  std::atomic<bool> holds = false;
  std::atomic<int> noted = 0;
  std::atomic<double> first_interrupt = 0.0;  // monotonic seconds; 0: none
};
static_assert(std::atomic<double>::is_always_lock_free, "handlers may use nothing else");
State state;

void quit_as_if_not_handled(int signal) {
  std::signal(signal, SIG_DFL);
  std::raise(signal);  // comes when the handler has returned
}

// True for a SIGINT that means to quit without saving.
bool is_second_interrupt() {
  const double now = monotonic_seconds();
  double first = 0.0;
  if (state.first_interrupt.compare_exchange_strong(first, now)) return false;
  return now - first > kSecondInterruptSeconds;
}

void note(int signal) {
  const auto say = [signal](StopNotice notice) {
    if (state.speaks) write_stop_notice(STDERR_FILENO, notice, signal);
  };
  if (!state.holds) {
    say(StopNotice::before_first_step);
    ::_exit(kExitStoppedEarly);
  }
  const bool is_first_interrupt = signal == SIGINT && state.first_interrupt == 0.0;
  if (signal == SIGINT && is_second_interrupt()) {
    say(StopNotice::quitting);
    return quit_as_if_not_handled(signal);
  }
  int none = 0;
  if (state.noted.compare_exchange_strong(none, signal) || is_first_interrupt) say(StopNotice::stopping);
}

void on_signal(int signal) {
  const int error = errno;
  const LauncherLine* launcher = state.launcher;
  if (launcher == nullptr || !launcher->send(static_cast<char>(signal))) note(signal);
  errno = error;
}

void set_handlers(void (*handler)(int)) {
  struct sigaction action {};
  action.sa_handler = handler;
  action.sa_flags = SA_RESTART;
  for (const auto& [signal, name] : kStopSignals) {
    struct sigaction before {};
    ::sigaction(signal, nullptr, &before);
    if (signal != SIGHUP || before.sa_handler != SIG_IGN) ::sigaction(signal, &action, nullptr);
  }
}
}  // namespace

const char* stop_signal_name(int signal) {
  for (const auto& [number, name] : kStopSignals) {
    if (number == signal) return name;
  }
  return "";
}

void write_stop_notice(int descriptor, StopNotice notice, int signal) {
  constexpr int kLongest = 82;
  winsize size{};
  const bool is_terminal = ::ioctl(descriptor, TIOCGWINSZ, &size) == 0;
  const bool is_narrow = is_terminal && size.ws_col > 0 && size.ws_col < kLongest;
  NoticeText text;
  if (is_terminal) text.append("\r\x1b[K");  // over a progress bar and the terminal's own ^C
  text.append(stop_signal_name(signal));
  switch (notice) {
    case StopNotice::before_first_step:
      text.append(": stopped before the first step");
      break;
    case StopNotice::quitting:
      text.append(" again: quitting without saving");
      break;
    case StopNotice::stopping:
      text.append(": stopping after this step, then saving");
      if (signal == SIGINT) text.append(is_narrow ? ";\n" : "; ");
      if (signal == SIGINT) text.append("press again to quit without saving");
      break;
  }
  text.append("\n");
  text.write_to(descriptor);
}

namespace stop_signals {

void take(const Options& options) {
  state.launcher = options.launcher;
  state.speaks = options.speaks;
  state.holds = false;
  state.noted = 0;
  state.first_interrupt = 0.0;
  state.is_taken = true;
  set_handlers(on_signal);
}

void ignore() {
  state.launcher = nullptr;
  state.noted = 0;
  state.is_taken = true;
  set_handlers(SIG_IGN);
}

void give_back() {
  set_handlers(SIG_DFL);
  state.is_taken = false;
}

bool are_taken() {
  return state.is_taken;
}

void hold() {
  state.holds = true;
}

void begin_running() {
  hold();
  if (const LauncherLine* launcher = state.launcher) launcher->send(LauncherLine::kRankIsRunning);
}

std::string reason() {
  if (LauncherLine* launcher = state.launcher; launcher != nullptr && state.noted == 0) {
    if (const std::optional<char> asked = launcher->receive()) state.noted = *asked;
    if (launcher->is_over()) return "the launcher is gone";
  }
  return stop_signal_name(state.noted);
}

void await_in_this_thread() {
  awaiting_thread = ::pthread_self();
  set_handlers(hand_on);
  const sigset_t signals = stop_signal_set();
  ::pthread_sigmask(SIG_BLOCK, &signals, nullptr);
}

int next_awaited() {
  const sigset_t signals = stop_signal_set();
  const timespec at_once{};
  return std::max(0, ::sigtimedwait(&signals, nullptr, &at_once));
}

}  // namespace stop_signals

}  // namespace megalith
