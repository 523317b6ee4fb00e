#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "observe/run_history.h"
#include "observe/wall_time.h"

namespace megalith::observe {

// A run as a report sees it.
struct ReportedRun {
  std::string name;
  RunHistory history;
  WallTime wall_time;
};

ReportedRun reported_run(const std::filesystem::path& directory, std::string name);

// The last parts of the paths, with as many parents as it takes to tell them apart.
std::vector<std::string> names_of(const std::vector<std::filesystem::path>& directories);

// Tokens per second by step: as logged, or from the step time and the config.
std::vector<Point> throughput_of(const RunHistory& history);

// "complete", "stopped early: a time limit", ...
std::string state_of(const RunHistory& history);

}  // namespace megalith::observe
