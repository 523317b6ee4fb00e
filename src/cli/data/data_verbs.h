#pragma once

#include "cli/verbs.h"

namespace megalith::cli {

// The verbs below `megalith data`.
void add_data_check(CLI::App& data, Action& run);
void add_data_concat(CLI::App& data, Action& run);
void add_data_decode(CLI::App& data, Action& run);
void add_data_download(CLI::App& data, Action& run);
void add_data_encode(CLI::App& data, Action& run);
void add_data_extract(CLI::App& data, Action& run);
void add_data_index(CLI::App& data, Action& run);
void add_data_info(CLI::App& data, Action& run);
void add_data_merge(CLI::App& data, Action& run);
void add_data_prepare(CLI::App& data, Action& run);
void add_data_tokenize(CLI::App& data, Action& run);
void add_data_train_tokenizer(CLI::App& data, Action& run);

}  // namespace megalith::cli
