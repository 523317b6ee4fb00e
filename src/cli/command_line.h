#pragma once

#include <CLI/App.hpp>
#include <optional>

namespace megalith::cli {

// Takes the command line apart. Nothing where the program can go on; else its exit code, after help, the version or the
// list of verbs was printed. User error, in plain words, for what cannot be understood.
std::optional<int> parse_command_line(CLI::App& program, int argc, char** argv);

}  // namespace megalith::cli
