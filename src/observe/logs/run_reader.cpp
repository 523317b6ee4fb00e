#include "observe/logs/run_reader.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>

#include "config/document.h"
#include "config/print.h"
#include "core/error.h"
#include "core/event_names.h"
#include "core/file.h"
#include "core/metric_names.h"
#include "observe/logs/dllogger_reader.h"
#include "observe/logs/event_line.h"

namespace megalith::observe {

namespace fs = std::filesystem;

namespace {

// Kept for every step; of other numbers the newest is enough, or nobody draws them.
constexpr std::string_view kCurves[] = {
    metric::kTrainLoss,       metric::kLearningRate, metric::kGradientNorm,         metric::kStepTime,
    metric::kTokensPerSecond, metric::kTflops,       metric::kTflopsPerRank,        metric::kMfu,
    metric::kFloorFraction,   metric::kDataWait,     metric::kCommunicationExposed, metric::kCheckpointStall,
    metric::kRankSpread};

constexpr double kMostRanks = 1e9;
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

fs::path dllogger_of(const fs::path& directory) {
  const fs::path nested = directory / "dllogger" / "rank-0" / "dllogger.json";
  return is_there(nested) ? nested : directory / "dllogger.json";
}

// "nan", "inf" and "-inf" break the curve.
std::optional<double> number_to_draw(const JsonMember& member) {
  const std::optional<double> number = number_of(member);
  return number && !std::isfinite(*number) ? kNan : number;
}

std::string text_in(const EventLine& line, std::string_view name) {
  const JsonMember* const member = line.field(name);
  return member == nullptr ? "" : text_of(*member);
}

std::map<std::string, std::string> flat_yaml(const std::string& text) {
  std::map<std::string, std::string> settings;
  config::Document document;
  try {
    document.read_yaml(text, "hparams.yaml");
  } catch (const Error&) {
    return {};  // shown as it is, just not understood
  }
  for (const auto& [key, value] : document.values()) settings[key] = config::display(value);
  for (const auto& [key, value] : config::derived_values(text)) {
    if (settings.contains(key)) settings[key] = value;
  }
  return settings;
}

// "cfg/optim/lr" of NeMo's record is our model.optim.lr.
std::string own_name_of(std::string_view key) {
  std::string name = key.starts_with("cfg/") ? "model/" + std::string(key.substr(4)) : std::string(key);
  std::replace(name.begin(), name.end(), '/', '.');
  return name;
}

double seconds_in(const JsonMember& timestamp) {
  double seconds = 0.0;  // a string, as Python's str() writes it
  std::from_chars(timestamp.text.data(), timestamp.text.data() + timestamp.text.size(), seconds);
  return seconds;
}

}  // namespace

RunReader::RunReader(fs::path run_directory, UseEvent use_event)
    : directory_(std::move(run_directory)),
      use_event_(std::move(use_event)),
      events_(directory_ / "events.jsonl"),
      dllogger_(dllogger_of(directory_)) {}

bool RunReader::poll() {
  const int64_t before = lines_;
  // A run that starts anew in the same directory has another config.
  if (!config_read_ || history_.starts.empty()) read_config();
  const size_t starts = history_.starts.size();
  bool same = events_.poll([this](std::string_view line) { take_event(line); });
  if (!events_have_steps_) same = dllogger_.poll([this](std::string_view line) { take_dllogger(line); }) && same;
  if (!same) forget();
  if (history_.starts.size() != starts) read_config();
  return !same || lines_ != before;
}

void RunReader::finish() {
  events_.finish([this](std::string_view line) { take_event(line); });
  dllogger_.finish([this](std::string_view line) { take_dllogger(line); });
}

void RunReader::forget() {
  history_ = {};
  events_ = LineTail(directory_ / "events.jsonl");
  dllogger_ = LineTail(dllogger_of(directory_));
  open_spans_.clear();
  events_have_steps_ = false;
  config_read_ = false;
}

void RunReader::read_config() {
  const fs::path path = directory_ / "hparams.yaml";
  if (!is_there(path)) return;
  history_.config = read_text(path);
  history_.settings = flat_yaml(history_.config);
  config_read_ = true;
}

void RunReader::take_event(std::string_view text) {
  ++lines_;
  const std::optional<EventLine> line = parse_event_line(text, members_);
  if (!line) {
    ++history_.unreadable_lines;
    return;
  }
  if (use_event_) use_event_(*line);
  const double time = static_cast<double>(line->wall) / 1e6;
  history_.run_id = text_of(line->run);
  const std::string node = text_of(line->node);
  if (std::find(history_.nodes.begin(), history_.nodes.end(), node) == history_.nodes.end())
    history_.nodes.push_back(node);
  take_time(time, -1);
  if (line->rank != 0) return;  // rank 0 speaks for all
  if (line->event == event::kMetrics) return take_metrics(*line, time);
  if (line->event == event::kJobStarted) {
    history_.starts.push_back({.time = time, .step = std::max<int64_t>(0, line->step)});
    history_.program = text_in(*line, event::kProgram);
    history_.processor = text_in(*line, event::kProcessor);
    history_.accelerator = text_in(*line, event::kAccelerator);
    history_.end.reset();
  }
  if (line->event == event::kJobTerminated) history_.end = RunEnd{.time = time, .reason = text_of(line->reason)};
  if (line->event == event::kCheckpointSaved) history_.saved_steps = line->step;
  take_span(*line, node);
}

void RunReader::take_metrics(const EventLine& line, double time) {
  for (const JsonMember& member : line.members) {
    if (member.parent != kEventFields) continue;
    if (const auto number = number_to_draw(member)) set_number(member.key, line.step, *number);
  }
  if (text_in(line, event::kKind) != metric::kTrain) return;
  events_have_steps_ = true;
  history_.last_step = line.step;
  take_time(time, line.step);
}

void RunReader::set_number(std::string_view name, int64_t step, double value) {
  if (name == metric::kValidationLoss) {
    history_.validation_loss.set(step, value);
  } else if (name == metric::kSlowestRank) {
    if (value >= 0.0 && value < kMostRanks) ++history_.slowest_ranks[static_cast<int64_t>(value)];
  } else if (name == metric::kSkipped) {
    history_.skipped_steps += value != 0.0 ? 1 : 0;
  } else if (name == metric::kConsumedSamples) {
    history_.consumed_samples = value;
  } else if (name.starts_with(metric::kMemory)) {
    std::string arena(name.substr(metric::kMemory.size()));
    std::replace(arena.begin(), arena.end(), '_', ' ');
    history_.memory[arena] = value;
  } else if (std::find(std::begin(kCurves), std::end(kCurves), name) != std::end(kCurves)) {
    history_.curves[std::string(name)].set(step, value);
  }
}

void RunReader::take_span(const EventLine& line, const std::string& node) {
  // Spans are told apart by the process that began them, since each counts its ids from one.
  if (line.phase == Phase::instant) return;
  const SpanKey key(node, line.boot, line.generation, line.id, line.event);
  SpanTotal& total = history_.spans[std::string(line.event)];
  if (line.phase == Phase::begin) {
    if (open_spans_.insert(key).second) ++total.open;
    return;
  }
  if (open_spans_.erase(key) > 0) --total.open;
  ++total.ended;
  total.seconds += line.duration;
}

void RunReader::take_dllogger(std::string_view line) {
  ++lines_;
  constexpr size_t kPrefix = 4;  // DLLL
  const JsonMember* step = nullptr;
  const JsonMember* timestamp = nullptr;
  if (is_dllogger_line(line) && scan_json_object(line.substr(kPrefix), members_)) {
    for (const JsonMember& member : members_) {
      if (member.parent.empty() && member.key == "step") step = &member;
      if (member.parent.empty() && member.key == "timestamp") timestamp = &member;
    }
  }
  if (step == nullptr) {
    ++history_.unreadable_lines;
    return;
  }
  if (step->text == "PARAMETER") take_parameters();
  const std::optional<int64_t> number = whole_number_of(*step);
  if (!number) return;
  for (const JsonMember& member : members_) {
    if (member.parent != "data") continue;
    // NeMo's moving mean, where nobody logged the step itself.
    const std::string_view name = member.key == metric::kMeanStepTime ? metric::kStepTime : member.key;
    set_number(name, *number, number_of(member).value_or(kNan));
    if (name == metric::kTrainLoss) history_.last_step = number;
  }
  if (timestamp != nullptr) take_time(seconds_in(*timestamp), *number);
}

void RunReader::take_parameters() {
  if (config_read_) return;
  history_.config.clear();
  for (const JsonMember& member : members_) {
    if (member.parent != "data") continue;
    history_.settings[own_name_of(member.key)] = text_of(member);
    history_.config += std::string(member.key) + ": " + text_of(member) + "\n";
  }
}

void RunReader::take_time(double time, int64_t step) {
  if (history_.first_time == 0.0) history_.first_time = time;
  history_.last_time = std::max(history_.last_time, time);
  if (step >= 0) history_.time_of_step.set(step, time);
}

}  // namespace megalith::observe
