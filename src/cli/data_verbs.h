#pragma once

#include "cli/verbs.h"

namespace megalith::cli {

// The verbs below `megalith data`, one file each (data_tokenize.cpp, ...).
void add_data_tokenize(CLI::App& data, Action& run);

}  // namespace megalith::cli
