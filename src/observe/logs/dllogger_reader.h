#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "observe/logs/json_scan.h"

namespace megalith::observe {

// What a line of dllogger.json (dllogger.h) tells about speed.
struct DlloggerRecord {
  bool is_parameters = false;  // the record "PARAMETER", with the config
  std::optional<int64_t> step;
  std::optional<double> step_seconds;  // "train_step_timing in s"
  std::optional<int64_t> global_batch_size;
  std::optional<int64_t> sequence_length;
  bool fp8 = false;
};

bool is_dllogger_line(std::string_view line);

// Nothing for a line that is torn or damaged. `scratch` keeps its memory between calls.
std::optional<DlloggerRecord> read_dllogger_line(std::string_view line, std::vector<JsonMember>& scratch);

}  // namespace megalith::observe
