#pragma once

#include "cli/verbs.h"

namespace megalith::cli {

// The verbs below `megalith report`.
void add_report_goodput(CLI::App& report, Action& run);
void add_report_run(CLI::App& report, Action& run);
void add_report_training(CLI::App& report, Action& run);

}  // namespace megalith::cli
