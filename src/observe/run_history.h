#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "observe/svg_plot.h"

namespace megalith::observe {

struct SpanTotal {
  int64_t ended = 0;
  int64_t open = 0;  // begun and never ended: the process was killed inside
  double seconds = 0.0;
};

// What a run's directory tells about it. Where steps were run again after a restart, the last word counts.
struct RunHistory {
  std::map<int64_t, double> train_loss;
  std::map<int64_t, double> validation_loss;
  std::map<int64_t, double> step_seconds;
  std::map<int64_t, double> tokens_per_second;
  std::map<int64_t, double> tflops;
  std::map<std::string, SpanTotal> spans;  // by event name
  std::string run_id;
  std::string first_time;  // UTC
  std::string last_time;
  int64_t unreadable_lines = 0;
  std::string config;  // YAML, or the parameters of dllogger.json
};

// Reads dllogger/rank-0/dllogger.json (or dllogger.json), events.jsonl and hparams.yaml, as far as they exist, line by
// line: lines that are torn or damaged are counted and passed over.
RunHistory read_run_history(const std::filesystem::path& run_directory);

std::vector<Point> to_points(const std::map<int64_t, double>& values);
std::optional<double> median(const std::map<int64_t, double>& values);

}  // namespace megalith::observe
