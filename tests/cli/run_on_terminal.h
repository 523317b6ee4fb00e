#pragma once

#include <pty.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>

#include "run_program.h"

namespace megalith::cli::testing {

struct TerminalSize {
  unsigned short columns = 80;
  unsigned short rows = 24;
};

// As run_program(), on a terminal of its own; the output is what the terminal receives, control codes included.
inline Outcome run_on_terminal(const std::string& arguments, const std::string& directory, TerminalSize size = {},
                               const std::string& variables = "") {
  const std::string command = "cd '" + directory + "'; " + variables + " " + MEGALITH_PROGRAM + " " + arguments;
  const winsize window{.ws_row = size.rows, .ws_col = size.columns, .ws_xpixel = 0, .ws_ypixel = 0};
  int terminal = -1;
  const pid_t process = ::forkpty(&terminal, nullptr, nullptr, &window);
  if (process == 0) {
    ::execl("/bin/sh", "sh", "-c", command.c_str(), nullptr);
    ::_exit(127);
  }
  Outcome outcome;
  std::array<char, 4096> buffer{};
  // An error once the last process has closed it.
  for (ssize_t count = 0; (count = ::read(terminal, buffer.data(), buffer.size())) > 0;)
    outcome.output.append(buffer.data(), static_cast<size_t>(count));
  int status = 0;
  ::waitpid(process, &status, 0);
  ::close(terminal);
  outcome.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return outcome;
}

// The lines that were drawn to be drawn again.
inline std::vector<std::string> live_lines(const std::string& received) {
  std::vector<std::string> lines;
  for (size_t end = received.find("\x1b[K"); end != std::string::npos; end = received.find("\x1b[K", end + 1)) {
    const size_t begin = received.rfind('\r', end);
    if (begin != std::string::npos && begin + 1 < end) lines.push_back(received.substr(begin + 1, end - begin - 1));
  }
  return lines;
}

}  // namespace megalith::cli::testing
