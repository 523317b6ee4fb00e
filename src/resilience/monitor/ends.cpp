#include "resilience/monitor/ends.h"

#include <signal.h>
#include <sys/wait.h>

#include <cerrno>
#include <sstream>

#include "core/error.h"
#include "core/file.h"

namespace megalith::resilience {

std::optional<EndedChild> find_ended_child(pid_t pid) {
  siginfo_t info{};
  const idtype_t which = pid == 0 ? P_ALL : P_PID;
  if (::waitid(which, static_cast<id_t>(pid), &info, WEXITED | WNOHANG | WNOWAIT) != 0 || info.si_pid == 0)
    return std::nullopt;
  EndedChild child{.process = identify_process(info.si_pid).value_or(ProcessIdentity{.pid = info.si_pid}), .end = {}};
  if (info.si_code == CLD_EXITED) {
    child.end.exit_code = info.si_status;
  } else {
    child.end.signal = info.si_status;
  }
  return child;
}

void let_go(const EndedChild& child) {
  ::kill(-child.process.pid, SIGKILL);  // its number is nobody else's until it is waited for
  int status = 0;
  while (::waitpid(child.process.pid, &status, 0) < 0 && errno == EINTR) {
  }
}

void write_end(const std::filesystem::path& ends, const EndedChild& child) {
  const ProcessEnd& end = child.end;
  File file = File::open_for_appending(ends);
  file.write(fmt::format("{} {} {} {}\n", child.process.pid, child.process.start_ticks, end.exit_code.value_or(-1),
                         end.signal));
}

std::optional<ProcessEnd> read_end(const std::filesystem::path& ends, const ProcessIdentity& process) {
  if (size_if_there(ends) < 0) return std::nullopt;
  std::istringstream text(read_text(ends));
  ProcessIdentity found;
  int64_t code = 0;
  int64_t signal = 0;
  while (text >> found.pid >> found.start_ticks >> code >> signal) {
    if (found != process) continue;
    ProcessEnd end{.exit_code = std::nullopt, .signal = signal};
    if (code >= 0) end.exit_code = code;
    return end;
  }
  return std::nullopt;
}

}  // namespace megalith::resilience
