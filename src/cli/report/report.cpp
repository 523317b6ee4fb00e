#include <CLI/CLI.hpp>

#include "cli/report/report_verbs.h"

namespace megalith::cli {

void add_report(CLI::App& program, Action& run) {
  CLI::App* report = program.add_subcommand("report", "Numbers of a run from its logs.");
  report->require_subcommand(1);
  for (const auto add : {add_report_training, add_report_goodput, add_report_run}) add(*report, run);
}

}  // namespace megalith::cli
