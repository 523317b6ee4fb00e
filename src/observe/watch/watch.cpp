#include "observe/watch/watch.h"

#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <charconv>
#include <iostream>
#include <optional>
#include <utility>

#include "config/environment/environment.h"
#include "core/clock.h"
#include "core/words.h"
#include "observe/logs/run_reader.h"
#include "observe/report/report_run.h"
#include "observe/watch/watch_frame.h"

namespace megalith::observe {

namespace {

std::atomic<bool> stop_requested = false;

void request_stop(int /*signal*/) {
  stop_requested = true;
}

void wake_up(int /*signal*/) {}

// A second screen without a cursor, keys that come at once; everything as it was when it goes.
class WatchScreen {
 public:
  WatchScreen() {
    set_handler(SIGINT, request_stop, old_interrupt_);
    set_handler(SIGTERM, request_stop, old_terminate_);
    set_handler(SIGWINCH, wake_up, old_resize_);
    has_keys_ = isatty(STDIN_FILENO) != 0 && ::tcgetattr(STDIN_FILENO, &old_mode_) == 0;
    if (has_keys_) {
      termios mode = old_mode_;
      mode.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO);
      ::tcsetattr(STDIN_FILENO, TCSANOW, &mode);
    }
    std::cout << "\x1b[?1049h\x1b[?25l" << std::flush;
  }
  ~WatchScreen() {
    std::cout << "\x1b[?25h\x1b[?1049l" << std::flush;
    if (has_keys_) ::tcsetattr(STDIN_FILENO, TCSANOW, &old_mode_);
    ::sigaction(SIGINT, &old_interrupt_, nullptr);
    ::sigaction(SIGTERM, &old_terminate_, nullptr);
    ::sigaction(SIGWINCH, &old_resize_, nullptr);
  }
  WatchScreen(const WatchScreen&) = delete;
  WatchScreen& operator=(const WatchScreen&) = delete;

  static void show(const std::vector<std::string>& lines) {
    std::string text = "\x1b[H";
    for (size_t i = 0; i < lines.size(); ++i) text += (i > 0 ? "\r\n" : "") + lines[i] + "\x1b[K";
    std::cout << text << "\x1b[J" << std::flush;
  }

  // Until a key, a new size or the time is up; true where the watcher wants to leave.
  bool wait(double seconds) const {
    pollfd keys{.fd = has_keys_ ? STDIN_FILENO : -1, .events = POLLIN, .revents = 0};
    if (::poll(&keys, 1, static_cast<int>(seconds * 1000)) <= 0) return stop_requested;
    char key = 0;
    return ::read(STDIN_FILENO, &key, 1) != 1 || key == 'q' || stop_requested;
  }

 private:
  static void set_handler(int signal, void (*handler)(int), struct sigaction& old) {
    struct sigaction action {};
    action.sa_handler = handler;
    ::sigaction(signal, &action, &old);
  }

  termios old_mode_{};
  bool has_keys_ = false;
  struct sigaction old_interrupt_ {};
  struct sigaction old_terminate_ {};
  struct sigaction old_resize_ {};
};

// A positive number in an environment variable, as shells set COLUMNS and LINES.
std::optional<int> number_in_environment(const char* name) {
  const std::string text = config::process_environment(name).value_or("");
  int number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size() || number <= 0) return std::nullopt;
  return number;
}

// Colours are not wanted: https://no-color.org
bool no_colour() {
  return !config::process_environment("NO_COLOR").value_or("").empty();
}

WatchView view_of_terminal(const WatchOptions& options) {
  winsize size{};
  const bool known = ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 && size.ws_row > 0;
  return {.width = known ? size.ws_col : number_in_environment("COLUMNS").value_or(80),
          .height = known ? size.ws_row : number_in_environment("LINES").value_or(24),
          .now = wall_seconds(),
          .stall_seconds = options.stall_seconds,
          .colour = known && !no_colour()};
}

void print(const std::vector<std::string>& lines) {
  for (const std::string& line : lines) std::cout << line << '\n';
  std::cout << std::flush;
}

}  // namespace

namespace {

// False where the watcher left before.
bool wait_for_run(const WatchOptions& options, const WatchScreen* screen) {
  const std::string words = fmt::format("waiting for a run in {}; Ctrl-C ends this", options.directory.string());
  const double begin = monotonic_seconds();
  bool said = false;
  while (awaits_run(options.directory)) {
    if (screen != nullptr) {
      WatchScreen::show({fmt::format("{} ({})", words, format_duration(monotonic_seconds() - begin))});
      if (screen->wait(options.interval_seconds)) return false;
    } else {
      if (!std::exchange(said, true)) std::cerr << words << std::endl;
      ::usleep(static_cast<useconds_t>(options.interval_seconds * 1e6));
    }
  }
  return true;
}

}  // namespace

void watch(const WatchOptions& options) {
  std::optional<WatchScreen> screen;
  if (!options.once) {
    const bool exists = !awaits_run(options.directory);
    if (exists) check_holds_run(options.directory);
    if (isatty(STDOUT_FILENO) != 0) screen.emplace();
    if (!exists && !wait_for_run(options, screen ? &*screen : nullptr)) return;
  }
  check_holds_run(options.directory);
  const std::string name = names_of({options.directory}).front();
  RunReader reader(options.directory);
  reader.poll();
  WatchView view = view_of_terminal(options);
  while (screen && watch_state(reader.history(), view) != WatchState::complete) {
    WatchScreen::show(watch_frame(name, reader.history(), view));
    if (screen->wait(options.interval_seconds)) break;
    reader.poll();
    view = view_of_terminal(options);
  }
  screen.reset();
  // Stays on the first screen, above the prompt.
  if (isatty(STDOUT_FILENO) != 0) view.height = std::max(1, view.height - 2);
  print(watch_frame(name, reader.history(), view));
}

}  // namespace megalith::observe
