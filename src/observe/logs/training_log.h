#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string_view>
#include <vector>

#include "observe/logs/json_scan.h"

namespace megalith::observe {

enum class TrainingLogKind { none, events, megatron, nemo, dllogger };

// "DLLogger", "NeMo's console", ...
std::string_view name_of(TrainingLogKind kind);

struct StepTime {
  int64_t step = 0;
  double seconds = 0.0;
};

// The step times in a log of training, and what else it tells about the run.
struct TrainingLog {
  TrainingLogKind kind = TrainingLogKind::none;
  std::vector<StepTime> steps;  // as the file has them: a resumed run may repeat some
  int64_t lines = 0;
  int64_t bad_lines = 0;  // torn or damaged records
  std::optional<int64_t> global_batch_size;
  std::optional<int64_t> sequence_length;
  bool fp8 = false;
  std::optional<double> peak_tflops;  // of a rank's accelerator, as the last start in an events.jsonl tells it
};

// Takes lines of any of the logs that hold step times, also mixed; where a file has several kinds, the best one counts:
// DLLogger's records, then NeMo's lines, Megatron's, Megalith's events.
class TrainingLogCollector {
 public:
  void take(std::string_view line);
  TrainingLog finish() && { return std::move(log_); }

 private:
  void take_step(TrainingLogKind kind, StepTime step);
  void take_dllogger(std::string_view line);
  void take_nemo(std::string_view line);
  void take_megatron(std::string_view line);
  void take_event(std::string_view text);

  TrainingLog log_;
  std::vector<JsonMember> members_;
};

TrainingLog read_training_log(const std::filesystem::path& file);

// The mean over the records of steps first..last, both included, and how many those are.
struct StepTimeMean {
  double seconds = 0.0;
  int64_t records = 0;
};
StepTimeMean mean_step_time(const TrainingLog& log, int64_t first, int64_t last);

}  // namespace megalith::observe
