#pragma once

#include <string>
#include <vector>

#include "plan/step_time/run_table.h"
#include "plan/step_time/step_time.h"

namespace megalith::plan {

struct Prediction {
  std::string problem;  // not empty: refused, and nothing else holds
  StepParts parts;
  double tokens_per_s = 0.0;
  double tflops = 0.0;  // of a GPU (docs/design.md, section 6)
  double mfu = 0.0;     // share of the peak of the run's precision
};

Prediction predict(const TableRun& run, const Constants& constants);
std::vector<Prediction> predict(const std::vector<TableRun>& runs, const Constants& constants);

// A line per run, with the columns that docs/planning.md describes.
std::string predictions_csv(const std::vector<TableRun>& runs, const std::vector<Prediction>& predictions);

}  // namespace megalith::plan
