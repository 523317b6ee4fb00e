#pragma once

#include <filesystem>
#include <set>
#include <string>
#include <tuple>

#include "observe/logs/json_scan.h"
#include "observe/logs/line_tail.h"
#include "observe/logs/run_history.h"

namespace megalith::observe {

// Follows the logs of a run that may still be running, without reading a line twice.
class RunReader {
 public:
  explicit RunReader(std::filesystem::path run_directory, UseEvent use_event = {});

  // Takes in what was written since the last call; true if there was anything.
  bool poll();
  // Nobody writes any more: a last line without an end is a torn one.
  void finish();

  const RunHistory& history() const { return history_; }

 private:
  using SpanKey = std::tuple<std::string, std::string, int64_t, int64_t, std::string>;

  void read_config();
  void take_event(std::string_view text);
  void take_metrics(const EventLine& line, double time);
  void take_span(const EventLine& line, const std::string& node);
  void take_dllogger(std::string_view line);
  void take_parameters();
  // `step` -1: of no step.
  void take_time(double time, int64_t step);
  void set_number(std::string_view name, int64_t step, double value);
  void forget();

  std::filesystem::path directory_;
  UseEvent use_event_;
  LineTail events_;
  LineTail dllogger_;
  RunHistory history_;
  bool events_have_steps_ = false;
  bool config_read_ = false;
  std::set<SpanKey> open_spans_;
  int64_t lines_ = 0;
  std::vector<JsonMember> members_;  // of the line being read
};

}  // namespace megalith::observe
