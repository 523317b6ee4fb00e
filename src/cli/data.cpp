#include <CLI/CLI.hpp>

#include "cli/data_verbs.h"

namespace megalith::cli {

void add_data(CLI::App& program, Action& run) {
  CLI::App* data = program.add_subcommand("data", "Prepare data for training.");
  data->require_subcommand(1);
  add_data_tokenize(*data, run);
}

}  // namespace megalith::cli
