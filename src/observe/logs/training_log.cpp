#include "observe/logs/training_log.h"

#include <cmath>

#include "core/event_names.h"
#include "core/metric_names.h"
#include "observe/logs/console_log_reader.h"
#include "observe/logs/dllogger_reader.h"
#include "observe/logs/event_line.h"
#include "observe/logs/line_reader.h"

namespace megalith::observe {

std::string_view name_of(TrainingLogKind kind) {
  switch (kind) {
    case TrainingLogKind::none:
      return "none";
    case TrainingLogKind::events:
      return "Megalith's events";
    case TrainingLogKind::megatron:
      return "Megatron's console";
    case TrainingLogKind::nemo:
      return "NeMo's console";
    case TrainingLogKind::dllogger:
      return "DLLogger";
  }
  return "?";
}

void TrainingLogCollector::take(std::string_view line) {
  ++log_.lines;
  if (is_dllogger_line(line)) {
    take_dllogger(line);
  } else if (line.starts_with('{')) {
    take_event(line);
  } else if (line.find(metric::kMeanStepTime) != std::string_view::npos) {
    take_nemo(line);
  } else if (line.find("elapsed time per iteration (ms)") != std::string_view::npos) {
    take_megatron(line);
  }
}

void TrainingLogCollector::take_step(TrainingLogKind kind, StepTime step) {
  if (kind < log_.kind) return;
  if (!std::isfinite(step.seconds) || step.seconds <= 0.0) {
    ++log_.bad_lines;
    return;
  }
  if (kind > log_.kind) log_.steps.clear();
  log_.kind = kind;
  // A progress bar is drawn again while its step lasts.
  const bool redrawn = kind == TrainingLogKind::nemo && !log_.steps.empty() && log_.steps.back().step == step.step;
  if (redrawn) log_.steps.pop_back();
  log_.steps.push_back(step);
}

void TrainingLogCollector::take_dllogger(std::string_view line) {
  const std::optional<DlloggerRecord> record = read_dllogger_line(line, members_);
  if (!record) {
    ++log_.bad_lines;
    return;
  }
  if (record->is_parameters) {
    log_.global_batch_size = record->global_batch_size;
    log_.sequence_length = record->sequence_length;
    log_.fp8 = record->fp8;
  }
  if (record->step && record->step_seconds)
    take_step(TrainingLogKind::dllogger, {.step = *record->step, .seconds = *record->step_seconds});
}

void TrainingLogCollector::take_nemo(std::string_view line) {
  const std::optional<ConsoleStep> step = read_nemo_line(line);
  if (!step) return;
  if (step->global_batch_size) log_.global_batch_size = step->global_batch_size;
  take_step(TrainingLogKind::nemo, {.step = step->step, .seconds = step->seconds});
}

void TrainingLogCollector::take_megatron(std::string_view line) {
  const std::optional<ConsoleStep> step = read_megatron_line(line);
  if (!step) return;
  if (step->global_batch_size) log_.global_batch_size = step->global_batch_size;
  take_step(TrainingLogKind::megatron, {.step = step->step, .seconds = step->seconds});
}

void TrainingLogCollector::take_event(std::string_view text) {
  const std::optional<EventLine> line = parse_event_line(text, members_);
  if (!line) {
    ++log_.bad_lines;
    return;
  }
  if (line->event == event::kJobStarted) log_.peak_tflops = line->number(event::kPeakTflops);
  const JsonMember* const kind = line->field(event::kKind);
  const std::optional<double> seconds = line->number(metric::kStepTime);
  if (kind != nullptr && kind->text == metric::kTrain && seconds)
    take_step(TrainingLogKind::events, {.step = line->step, .seconds = *seconds});
}

TrainingLog read_training_log(const std::filesystem::path& file) {
  LineReader reader(file);
  TrainingLogCollector collector;
  while (const auto line = reader.next()) collector.take(*line);
  return std::move(collector).finish();
}

StepTimeMean mean_step_time(const TrainingLog& log, int64_t first, int64_t last) {
  StepTimeMean mean;
  for (const StepTime& step : log.steps) {
    if (step.step < first || step.step > last) continue;
    mean.seconds += step.seconds;
    ++mean.records;
  }
  if (mean.records > 0) mean.seconds /= static_cast<double>(mean.records);
  return mean;
}

}  // namespace megalith::observe
