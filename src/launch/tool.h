#pragma once

#include <functional>
#include <string>
#include <vector>

namespace megalith::launch {

// A program of the cluster (sbatch, kubectl, ...), run without a shell.
struct ToolCall {
  std::vector<std::string> command;  // found in PATH
  std::string input{};               // its standard input
  double seconds = 60.0;             // after which it is ended
  // Variables whose names begin so are not passed on, but for those of `keep`.
  std::vector<std::string> without{};
  std::vector<std::string> keep{};
  // Gets each line of the output, without its end, as soon as it is there; false ends the program. Empty: the answer
  // holds the output.
  std::function<bool(const std::string&)> on_line{};
};

struct ToolAnswer {
  int exit_code = 0;  // 128 + signal for one that a signal ended
  std::string output;
  std::string errors;
  bool in_time = true;

  bool good() const { return exit_code == 0 && in_time; }
  // What it said, in one line, for messages.
  std::string words() const;
};

bool has_tool(const std::string& name);

// Io error where the program cannot be started.
ToolAnswer run_tool(const ToolCall& call);

}  // namespace megalith::launch
