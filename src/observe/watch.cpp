#include "observe/watch.h"

#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include <atomic>
#include <iostream>

#include "core/clock.h"
#include "observe/report_run.h"
#include "observe/run_reader.h"
#include "observe/watch_frame.h"

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

  void show(const std::vector<std::string>& lines) {
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

WatchView view_of_terminal(const WatchOptions& options) {
  winsize size{};
  const bool known = ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 && size.ws_row > 0;
  return {.width = known ? size.ws_col : 80,
          .height = known ? size.ws_row : 24,
          .now = wall_seconds(),
          .stall_seconds = options.stall_seconds,
          .colour = known};
}

void print(const std::vector<std::string>& lines) {
  for (const std::string& line : lines) std::cout << line << '\n';
  std::cout << std::flush;
}

}  // namespace

void watch(const WatchOptions& options) {
  check_holds_run(options.directory);
  const std::string name = names_of({options.directory}).front();
  RunReader reader(options.directory);
  reader.poll();
  WatchView view = view_of_terminal(options);
  if (!options.once && isatty(STDOUT_FILENO) != 0) {
    WatchScreen screen;
    while (watch_state(reader.history(), view) != WatchState::complete) {
      screen.show(watch_frame(name, reader.history(), view));
      if (screen.wait(options.interval_seconds)) break;
      reader.poll();
      view = view_of_terminal(options);
    }
  }
  // Stays on the first screen.
  print(watch_frame(name, reader.history(), view));
}

}  // namespace megalith::observe
