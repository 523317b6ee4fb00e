#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "observe/goodput/wall_time.h"
#include "observe/logs/run_history.h"

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

// Whether runs are compared by tokens: their steps hold different numbers of them, and all of these are known.
bool counts_tokens(const std::vector<ReportedRun>& runs);

// Tokens per second by step: as logged, or from the step time and the config.
std::vector<Point> throughput_of(const RunHistory& history);

// "complete", "stopped early: a time limit", ...
std::string state_of(const RunHistory& history);

}  // namespace megalith::observe
