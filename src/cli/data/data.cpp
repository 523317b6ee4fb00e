#include <CLI/CLI.hpp>

#include "cli/data/data_verbs.h"

namespace megalith::cli {

void add_data(CLI::App& program, Action& run) {
  CLI::App* data = program.add_subcommand("data", "Prepare data for training.");
  data->require_subcommand(1);
  // In the order of the work.
  for (const auto add :
       {add_data_download, add_data_prepare, add_data_extract, add_data_concat, add_data_tokenize, add_data_merge,
        add_data_check, add_data_info, add_data_index, add_data_encode, add_data_decode, add_data_train_tokenizer}) {
    add(*data, run);
  }
}

}  // namespace megalith::cli
