#include "launch/tool.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <sstream>
#include <utility>

#include "config/environment/environment.h"
#include "config/scalar.h"
#include "core/clock.h"
#include "core/error.h"

namespace megalith::launch {

namespace {

struct Pipe {
  Pipe() {
    if (::pipe2(ends.data(), O_CLOEXEC) != 0) io_error_errno("making a pipe");
  }
  ~Pipe() {
    close_end(0);
    close_end(1);
  }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;

  void close_end(size_t end) {
    if (ends[end] >= 0) ::close(std::exchange(ends[end], -1));
  }

  std::array<int, 2> ends{};
};

std::vector<std::string> environment_for(const ToolCall& call) {
  std::vector<std::string> variables;
  for (char** each = environ; *each != nullptr; ++each) {
    const std::string variable(*each);
    const std::string name = variable.substr(0, variable.find('='));
    const auto begins = [&](const std::string& prefix) { return name.starts_with(prefix); };
    const bool kept = std::find(call.keep.begin(), call.keep.end(), name) != call.keep.end();
    if (kept || std::none_of(call.without.begin(), call.without.end(), begins)) variables.push_back(variable);
  }
  return variables;
}

std::vector<char*> pointers_to(const std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  for (const std::string& text : texts) pointers.push_back(const_cast<char*>(text.c_str()));
  pointers.push_back(nullptr);
  return pointers;
}

class Tool {
 public:
  explicit Tool(const ToolCall& call) : call_(call) {
    const std::vector<std::string> variables = environment_for(call);
    const std::vector<char*> command = pointers_to(call.command);
    const std::vector<char*> environment = pointers_to(variables);
    posix_spawn_file_actions_t actions{};
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, input_.ends[0], STDIN_FILENO);
    posix_spawn_file_actions_adddup2(&actions, output_.ends[1], STDOUT_FILENO);
    posix_spawn_file_actions_adddup2(&actions, errors_.ends[1], STDERR_FILENO);
    const int problem = ::posix_spawnp(&process_, command[0], &actions, nullptr, command.data(), environment.data());
    posix_spawn_file_actions_destroy(&actions);
    if (problem != 0) fail(ErrorKind::io, "cannot run {}: {}", call.command.front(), std::strerror(problem));
    input_.close_end(0);
    output_.close_end(1);
    errors_.close_end(1);
    for (const int end : {input_.ends[1], output_.ends[0], errors_.ends[0]}) ::fcntl(end, F_SETFL, O_NONBLOCK);
  }

  ToolAnswer finish() {
    const double until = monotonic_seconds() + call_.seconds;
    while (output_.ends[0] >= 0 || errors_.ends[0] >= 0) {
      const double left = until - monotonic_seconds();
      if (left <= 0) {
        answer_.in_time = false;
        ::kill(process_, SIGKILL);
        break;
      }
      wait_for_events(left);
      write_input();
      read_from(output_, answer_.output);
      read_from(errors_, answer_.errors);
      if (call_.on_line && !hand_over_lines()) {
        ::kill(process_, SIGTERM);
        break;
      }
    }
    int status = 0;
    while (::waitpid(process_, &status, 0) < 0 && errno == EINTR) {
    }
    answer_.exit_code = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
    return std::move(answer_);
  }

 private:
  void wait_for_events(double seconds) const {
    std::array<pollfd, 3> polled = {{{.fd = output_.ends[0], .events = POLLIN, .revents = 0},
                                     {.fd = errors_.ends[0], .events = POLLIN, .revents = 0},
                                     {.fd = input_.ends[1], .events = POLLOUT, .revents = 0}}};
    ::poll(polled.data(), polled.size(), static_cast<int>(std::min(seconds, 60.0) * 1000) + 1);
  }

  void write_input() {
    if (input_.ends[1] < 0) return;
    const size_t left = call_.input.size() - written_;
    const ssize_t count = left == 0 ? 0 : ::write(input_.ends[1], call_.input.data() + written_, left);
    if (count > 0) written_ += static_cast<size_t>(count);
    const bool is_gone = count < 0 && errno != EAGAIN && errno != EINTR;
    if (is_gone || written_ == call_.input.size()) input_.close_end(1);
  }

  // The last line may have no end.
  bool hand_over_lines() {
    std::string& text = answer_.output;
    size_t begin = 0;
    for (size_t end = text.find('\n'); end != std::string::npos; begin = end + 1, end = text.find('\n', begin)) {
      if (!call_.on_line(text.substr(begin, end - begin))) return false;
    }
    text.erase(0, begin);
    const bool is_over = output_.ends[0] < 0;
    return !is_over || text.empty() || call_.on_line(std::exchange(text, ""));
  }

  static void read_from(Pipe& pipe, std::string& into) {
    std::array<char, 4096> chunk{};
    while (pipe.ends[0] >= 0) {
      const ssize_t count = ::read(pipe.ends[0], chunk.data(), chunk.size());
      if (count < 0) return;
      if (count == 0) return pipe.close_end(0);
      into.append(chunk.data(), static_cast<size_t>(count));
    }
  }

  const ToolCall& call_;
  Pipe input_, output_, errors_;
  pid_t process_ = -1;
  size_t written_ = 0;
  ToolAnswer answer_;
};

// One that ends without reading must not end this program.
class PipeSignalIgnored {
 public:
  PipeSignalIgnored() : before_(::signal(SIGPIPE, SIG_IGN)) {}
  ~PipeSignalIgnored() { ::signal(SIGPIPE, before_); }
  PipeSignalIgnored(const PipeSignalIgnored&) = delete;
  PipeSignalIgnored& operator=(const PipeSignalIgnored&) = delete;

 private:
  sighandler_t before_;
};

}  // namespace

std::string ToolAnswer::words() const {
  if (!in_time) return "it did not answer in time";
  std::string text(config::trimmed(errors.empty() ? output : errors));
  std::replace(text.begin(), text.end(), '\n', ' ');
  return text.empty() ? fmt::format("it ended with exit code {}", exit_code) : text;
}

bool has_tool(const std::string& name) {
  std::istringstream folders(config::process_environment("PATH").value_or("/usr/bin:/bin"));
  for (std::string folder; std::getline(folders, folder, ':');) {
    if (::access((std::filesystem::path(folder) / name).c_str(), X_OK) == 0) return true;
  }
  return false;
}

ToolAnswer run_tool(const ToolCall& call) {
  const PipeSignalIgnored ignored;
  return Tool(call).finish();
}

}  // namespace megalith::launch
