#include <CLI/CLI.hpp>

#include "cli/report_verbs.h"
namespace megalith::cli {
void add_report_training(CLI::App& report, Action&) {
  report.add_subcommand("training", "");
}
}  // namespace megalith::cli
