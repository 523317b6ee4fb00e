#pragma once

#include "cli/verbs.h"
#include "core/error.h"

namespace megalith::cli {

// The verbs below `megalith report`.
void add_report_goodput(CLI::App& report, Action& run);
void add_report_run(CLI::App& report, Action& run);
void add_report_training(CLI::App& report, Action& run);

// A file that was named and cannot be read or written is a mistake of the command, which exits with 2.
template <class Report>
int report_or_explain(const Report& report) {
  try {
    return report();
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::io) throw;
    user_error("the report cannot be made: {}", error.what());
  }
}

}  // namespace megalith::cli
