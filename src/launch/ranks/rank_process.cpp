#include "launch/ranks/rank_process.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "core/error.h"
#include "core/process/stop_signals.h"

namespace megalith::launch {

namespace {
constexpr size_t kLongestLine = 1 << 16;
constexpr int kCannotRun = 127;  // as shells say it

RankProcess::Pipe make_pipe() {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) io_error_errno("making a pipe for the output of a rank");
  ::fcntl(ends[0], F_SETFL, O_NONBLOCK);
  return {ends[0], ends[1]};
}

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

struct Inherited {
  int output = -1;
  int errors = -1;
  int line = -1;  // -1: none
};

// Between fork and exec: only what is safe there. A signal that came in the meantime ends the rank: the handlers are
// its parent's.
[[noreturn]] void become_rank(char* const* command, char* const* environment, const sigset_t& signals,
                              const Inherited& inherited) {
  ::setpgid(0, 0);
  ::prctl(PR_SET_PDEATHSIG, SIGTERM);
  const int nothing = ::open("/dev/null", O_RDONLY);
  ::dup2(nothing, STDIN_FILENO);
  ::dup2(inherited.output, STDOUT_FILENO);
  ::dup2(inherited.errors, STDERR_FILENO);
  if (inherited.line >= 0) ::fcntl(inherited.line, F_SETFD, 0);
  for (const auto& [signal, name] : kStopSignals) set_default(signal);
  set_default(SIGCHLD);
  ::sigprocmask(SIG_SETMASK, &signals, nullptr);
  ::execve(command[0], command, environment);
  ::_exit(kCannotRun);
}
}  // namespace

PrefixedLines::PrefixedLines(int pipe, std::string prefix, std::FILE* to, LiveLine* live)
    : pipe_(pipe), prefix_(std::move(prefix)), to_(to), live_(live) {}

PrefixedLines::~PrefixedLines() {
  if (pipe_ >= 0) ::close(pipe_);
}

PrefixedLines::PrefixedLines(PrefixedLines&& other) noexcept
    : pipe_(std::exchange(other.pipe_, -1)),
      prefix_(std::move(other.prefix_)),
      to_(other.to_),
      live_(other.live_),
      begun_(std::move(other.begun_)) {}

void PrefixedLines::pump() {
  char chunk[4096];
  while (pipe_ >= 0) {
    const ssize_t count = ::read(pipe_, chunk, sizeof chunk);
    if (count < 0) break;
    if (count == 0) {
      ::close(std::exchange(pipe_, -1));
      break;
    }
    begun_.append(chunk, static_cast<size_t>(count));
    size_t begin = 0;
    for (size_t end = begun_.find('\n'); end != std::string::npos; end = begun_.find('\n', begin)) {
      write_line(begun_.substr(begin, end - begin));
      begin = end + 1;
    }
    begun_.erase(0, begin);
    if (live_ != nullptr) draw_live();
    if (begun_.size() > kLongestLine) write_line(std::exchange(begun_, {}));
  }
  std::fflush(to_);
}

void PrefixedLines::finish() {
  pump();
  if (!begun_.empty()) write_line(std::exchange(begun_, {}));
  std::fflush(to_);
  if (pipe_ >= 0) ::close(std::exchange(pipe_, -1));
}

void PrefixedLines::draw_live() {
  const LineState state = shown_of(begun_);
  if (!state.live) return;
  live_->set(state.text.empty() ? "" : prefix_ + std::string(state.text));
  // Kept until its line ends, or it is drawn again.
  begun_.erase(0, state.text.empty() ? begun_.size() : static_cast<size_t>(state.text.data() - begun_.data()) - 1);
}

void PrefixedLines::write_line(const std::string& line) {
  if (live_ == nullptr) {
    const std::string whole = prefix_ + line + '\n';
    std::fwrite(whole.data(), 1, whole.size(), to_);
    return;
  }
  const LineState state = shown_of(line);
  if (state.live) live_->set("");
  live_->print(to_, prefix_ + std::string(state.text));
}

std::string Ending::describe() const {
  if (signal != 0) return fmt::format("was ended by signal {} ({})", signal, ::strsignal(signal));
  if (exit_code == kCannotRun) return "could not run its command (exit code 127)";
  return fmt::format("ended with exit code {}", exit_code);
}

RankProcess::RankProcess(const Options& options) : RankProcess(options, make_pipe(), make_pipe()) {}

RankProcess::RankProcess(const Options& options, const Pipe& output, const Pipe& errors)
    : rank_(options.rank),
      output_(output.read, fmt::format("[{}] ", rank_), options.output, options.live),
      errors_(errors.read, fmt::format("[{}] ", rank_), options.errors, options.live) {
  const Inherited inherited{.output = output.write, .errors = errors.write, .line = open_line(options.secret)};
  std::vector<std::string> given = options.environment;
  // Also where there is none: that of another launcher, around this one, is not the rank's.
  given.push_back(fmt::format("{}={}", LauncherLine::kVariable, line_ ? std::to_string(inherited.line) : ""));
  const std::vector<std::string> variables = with_own_environment(std::move(given));
  const std::vector<char*> command = pointers_to(*options.command);
  const std::vector<char*> environment = pointers_to(variables);
  const SignalPause pause;
  process_ = ::fork();
  if (process_ == 0) become_rank(command.data(), environment.data(), pause.before(), inherited);
  if (process_ < 0) io_error_errno(fmt::format("starting rank {}", rank_));
  ::setpgid(process_, process_);  // here as well: a signal may be sent to the group before the child has come to it
  ::close(output.write);
  ::close(errors.write);
  if (line_) ::close(inherited.line);
}

int RankProcess::open_line(const std::optional<std::string>& secret) {
  if (!secret) return -1;
  std::array<int, 2> ends{};
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()) != 0)
    io_error_errno(fmt::format("making a line to rank {}", rank_));
  line_.emplace(ends[0]);
  line_->send_secret(*secret);
  return ends[1];
}

void RankProcess::send(int signal) const {
  if (running()) ::kill(-process_, signal);
}

bool RankProcess::reap() {
  int status = 0;
  if (ending_ || ::waitpid(process_, &status, WNOHANG) != process_) return false;
  ending_ = WIFSIGNALED(status) ? Ending{128 + WTERMSIG(status), WTERMSIG(status)} : Ending{WEXITSTATUS(status), 0};
  return true;
}

}  // namespace megalith::launch
