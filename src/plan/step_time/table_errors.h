#pragma once

#include <functional>
#include <string>
#include <vector>

#include "plan/step_time/predictions.h"

namespace megalith::plan {

// Predicted against measured, over some runs of a table.
struct TableError {
  std::string name;
  size_t runs = 0;
  double mape = 0.0;    // mean of the absolute errors, as a share of the measured time
  double median = 0.0;  // of the absolute errors
  double bias = 0.0;    // mean of the signed ones
  double worst = 0.0;
  std::string worst_id;
};

// Runs of one job, layout against layout, by their times per sample.
struct SweepError {
  std::string name;
  size_t runs = 0;
  double regret = 0.0;       // what the best by prediction loses to the best that was measured
  double top3_regret = 0.0;  // the same for the best measured among the three best by prediction
  double tau = 0.0;          // Kendall
};

struct TableErrors {
  std::vector<TableError> groups;  // by tier, set, gpu, precision
  std::vector<SweepError> sweeps;  // of three runs or more
  double mean_regret = 0.0;
  double mean_tau = 0.0;  // weighted by runs

  // Null where the table has no such group.
  const TableError* find(const std::string& name) const;
};

// Of the runs with a measured time. Sweeps: of the tiers that count, A and B.
TableErrors compare(const std::vector<TableRun>& runs, const std::vector<Prediction>& predictions);
std::string describe(const TableErrors& errors);

}  // namespace megalith::plan
