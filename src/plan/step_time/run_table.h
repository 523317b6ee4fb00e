#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "plan/step_time/run_features.h"

namespace megalith::plan {

// Runs that somebody published, a line each (docs/planning.md has the columns).
struct TableRun {
  std::string id;
  RunFeatures features;
  std::string problem;  // why this layout cannot be; empty where it can
  // Never read for a prediction:
  std::string set;
  std::string tier;
  std::string sweep;
  std::string gpu;
  std::string precision;
  std::optional<double> measured_step_s;
};

// A user error that names line and column where a cell is none of what the column may hold.
std::vector<TableRun> parse_run_table(std::string_view text, const std::string& name, const cost::Hardware& hardware);
std::vector<TableRun> read_run_table(const std::filesystem::path& file, const cost::Hardware& hardware);

}  // namespace megalith::plan
