#include "launch/ranks/start_process.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <optional>
#include <utility>

#include "core/error.h"
#include "core/process/launcher_line.h"
#include "core/process/stop_signals.h"

namespace megalith::launch {

namespace {
std::vector<char*> pointers_to(const std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  pointers.reserve(texts.size() + 1);
  for (const std::string& text : texts) pointers.push_back(const_cast<char*>(text.c_str()));
  pointers.push_back(nullptr);
  return pointers;
}

std::vector<std::string> with_own_environment(std::vector<std::string> variables) {
  const auto given = variables;
  for (char** each = environ; *each != nullptr; ++each) {
    const std::string variable(*each);
    const std::string name = variable.substr(0, variable.find('=') + 1);
    bool replaced = false;
    for (const std::string& other : given) replaced = replaced || other.starts_with(name);
    if (!replaced) variables.push_back(variable);
  }
  return variables;
}

// While it lives, no signal reaches this thread.
class SignalPause {
 public:
  SignalPause() {
    sigset_t all{};
    sigfillset(&all);
    ::pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~SignalPause() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  SignalPause(const SignalPause&) = delete;
  SignalPause& operator=(const SignalPause&) = delete;

  const sigset_t& before() const { return before_; }

 private:
  sigset_t before_{};
};

void set_default(int signal) {
  struct sigaction now {};
  ::sigaction(signal, nullptr, &now);
  if (now.sa_handler != SIG_IGN) ::signal(signal, SIG_DFL);
}

// Not at exec alone: an end of the line that this process kept would hide that the other side is gone.
void close_all_but(int line) {
  constexpr unsigned kFirst = STDERR_FILENO + 1;
  const auto kept = static_cast<unsigned>(line);
  if (line < 0) {
    ::close_range(kFirst, ~0U, 0);
    return;
  }
  if (kept > kFirst) ::close_range(kFirst, kept - 1, 0);
  ::close_range(kept + 1, ~0U, 0);
}

void wait_for_line(int line) {
  char first = 0;
  ssize_t count = 0;
  do {
    count = ::recv(line, &first, 1, MSG_PEEK);
  } while (count < 0 && errno == EINTR);
  if (count <= 0) ::_exit(kCannotRun);
}

// Between fork and exec: only what is safe there. A signal that came in the meantime ends the process: the handlers are
// its parent's.
[[noreturn]] void become(char* const* command, char* const* environment, const sigset_t& signals,
                         const ProcessStart& start) {
  if (start.is_detached) {
    ::setsid();
  } else {
    ::setpgid(0, 0);
    ::prctl(PR_SET_PDEATHSIG, SIGTERM);
  }
  const int nothing = ::open("/dev/null", O_RDONLY);
  ::dup2(nothing, STDIN_FILENO);
  ::dup2(start.output, STDOUT_FILENO);
  ::dup2(start.errors, STDERR_FILENO);
  if (start.is_detached) close_all_but(start.line);
  if (start.line >= 0) ::fcntl(start.line, F_SETFD, 0);
  for (const auto& [signal, name] : kStopSignals) set_default(signal);
  set_default(SIGCHLD);
  ::sigprocmask(SIG_SETMASK, &signals, nullptr);
  if (start.is_detached && start.line >= 0) wait_for_line(start.line);
  ::execve(command[0], command, environment);
  ::_exit(kCannotRun);
}

// Open until the child has left this process's session and closed what it inherited, or is gone.
class Departure {
 public:
  Departure() {
    if (::pipe2(ends_.data(), O_CLOEXEC) != 0) io_error_errno("making a pipe");
  }
  ~Departure() {
    ::close(ends_[1]);
    ::close(ends_[0]);
  }
  Departure(const Departure&) = delete;
  Departure& operator=(const Departure&) = delete;

  void await() {
    ::close(std::exchange(ends_[1], -1));
    char none = 0;
    while (::read(ends_[0], &none, 1) < 0 && errno == EINTR) {
    }
  }

 private:
  std::array<int, 2> ends_{};
};
}  // namespace

pid_t start_process(const ProcessStart& start) {
  std::vector<std::string> given = start.environment;
  // Also where there is none: that of another launcher, around this one, is not the process's.
  given.push_back(fmt::format("{}={}", LauncherLine::kVariable, start.line >= 0 ? std::to_string(start.line) : ""));
  const std::vector<std::string> variables = with_own_environment(std::move(given));
  const std::vector<char*> command = pointers_to(start.command);
  const std::vector<char*> environment = pointers_to(variables);
  const SignalPause pause;
  std::optional<Departure> departure;
  if (start.is_detached) departure.emplace();
  sigset_t none{};
  sigemptyset(&none);
  const pid_t process = ::fork();
  if (process == 0) become(command.data(), environment.data(), start.is_detached ? none : pause.before(), start);
  if (process < 0) io_error_errno(fmt::format("starting {}", start.command.front()));
  // A signal may be sent to the group before the child has come to it.
  if (departure) {
    departure->await();
  } else {
    ::setpgid(process, process);
  }
  return process;
}

}  // namespace megalith::launch
