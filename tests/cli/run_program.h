#pragma once

#include <sys/wait.h>

#include <array>
#include <cstdio>
#include <string>
#include <vector>

namespace megalith::cli::testing {

struct Outcome {
  int exit_code = -1;
  std::string output;  // stdout and stderr
};

// Runs the built program as a person would, in `directory`, after `variables` ("NAME=value ...").
inline Outcome run_program(const std::string& arguments, const std::string& directory = ".",
                           const std::string& variables = "") {
  const std::string command =
      "cd '" + directory + "'; " + variables + " " + std::string(MEGALITH_PROGRAM) + " " + arguments + " 2>&1";
  Outcome outcome;
  FILE* pipe = popen(command.c_str(), "r");
  std::array<char, 4096> buffer{};
  while (const size_t count = fread(buffer.data(), 1, buffer.size(), pipe)) outcome.output.append(buffer.data(), count);
  const int status = pclose(pipe);
  outcome.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return outcome;
}

}  // namespace megalith::cli::testing
