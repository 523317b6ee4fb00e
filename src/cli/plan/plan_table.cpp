#include "cli/plan/plan_table.h"

#include <iostream>

#include "cli/paths.h"
#include "cli/verbs.h"
#include "core/file.h"
#include "cost/hardware_file.h"
#include "plan/step_time/table_errors.h"

namespace megalith::cli {

int plan_table(const PlanTableOptions& options) {
  check_input_file("--table", options.table.string());
  check_input_file("--constants", options.constants.string());
  check_input_file("--hardware", options.hardware.string());
  check_output_file("--out", options.predictions.string());
  const cost::Hardware hardware = options.hardware.empty() ? cost::Hardware() : cost::hardware_with(options.hardware);
  const plan::Constants constants =
      options.constants.empty() ? plan::fitted_constants()
                                : plan::parse_constants(read_text(options.constants), options.constants.string());
  const std::vector<plan::TableRun> runs = plan::read_run_table(options.table, hardware);
  const std::vector<plan::Prediction> predictions = plan::predict(runs, constants);
  if (!options.predictions.empty()) replace_file(options.predictions, plan::predictions_csv(runs, predictions));
  std::cout << plan::describe(plan::compare(runs, predictions));
  return kExitComplete;
}

}  // namespace megalith::cli
