#include "launch/ranks/rank_process.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "core/error.h"
#include "launch/ranks/start_process.h"

namespace megalith::launch {

namespace {
constexpr size_t kLongestLine = 1 << 16;

RankProcess::Pipe make_pipe() {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) io_error_errno("making a pipe for the output of a rank");
  ::fcntl(ends[0], F_SETFL, O_NONBLOCK);
  return {ends[0], ends[1]};
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
  const int line = open_line(options.secret);
  process_ = start_process({.command = *options.command,
                            .environment = options.environment,
                            .output = output.write,
                            .errors = errors.write,
                            .line = line});
  ::close(output.write);
  ::close(errors.write);
  if (line_) ::close(line);
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
