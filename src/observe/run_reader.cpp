#include "observe/run_reader.h"

#include <algorithm>
#include <charconv>
#include <limits>

#include "config/document.h"
#include "core/error.h"
#include "core/file.h"
#include "observe/dllogger_reader.h"
#include "observe/events.h"
#include "observe/timestamp.h"

namespace megalith::observe {

namespace fs = std::filesystem;
using namespace std::string_literals;

namespace {

// Kept for every step; of other numbers the newest is enough, or nobody draws them.
constexpr std::string_view kCurves[] = {
    "reduced_train_loss", "lr",  "grad_norm",      "step_time", "tokens_per_second",     "tflops",
    "tflops_per_rank",    "mfu", "floor_fraction", "data_wait", "communication_exposed", "checkpoint_stall",
    "rank_spread"};
constexpr std::string_view kMemory = "memory.";

constexpr double kMostRanks = 1e9;
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

fs::path dllogger_of(const fs::path& directory) {
  const fs::path nested = directory / "dllogger" / "rank-0" / "dllogger.json";
  return fs::exists(nested) ? nested : directory / "dllogger.json";
}

std::optional<double> number_of(const Value& value) {
  if (const auto* real = std::get_if<double>(&value)) return *real;
  if (const auto* whole = std::get_if<int64_t>(&value)) return static_cast<double>(*whole);
  // "nan", "inf" and "-inf" break the curve.
  if (const auto* text = std::get_if<std::string>(&value)) {
    if (*text == "nan" || *text == "inf" || *text == "-inf") return kNan;
  }
  return std::nullopt;
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

RunReader::RunReader(fs::path run_directory)
    : directory_(std::move(run_directory)), events_(directory_ / "events.jsonl"), dllogger_(dllogger_of(directory_)) {}

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
  if (!fs::exists(path)) return;
  history_.config = read_text(path);
  history_.settings = flat_yaml(history_.config);
  config_read_ = true;
}

void RunReader::take_event(std::string_view line) {
  ++lines_;
  const std::optional<LoggedEvent> logged = parse_event_line(line);
  if (!logged) {
    ++history_.unreadable_lines;
    return;
  }
  const Event& event = logged->event;
  const double time = static_cast<double>(parse_timestamp(logged->time).value_or(0)) / 1e6;
  history_.run_id = logged->run_id;
  if (std::find(history_.nodes.begin(), history_.nodes.end(), logged->node) == history_.nodes.end())
    history_.nodes.push_back(logged->node);
  take_time(time, -1);
  if (logged->rank != 0) return;  // rank 0 speaks for all
  if (event.name == "metrics") return take_metrics(*logged, time);
  if (event.name == "job_started") {
    history_.starts.push_back({.time = time, .step = std::max<int64_t>(0, event.step)});
    history_.end.reset();
  }
  if (event.name == "job_terminated") history_.end = RunEnd{.time = time, .reason = event.reason};
  if (event.name == "checkpoint_saved") history_.saved_steps = event.step;
  take_span(*logged);
}

void RunReader::take_metrics(const LoggedEvent& logged, double time) {
  const int64_t step = logged.event.step;
  for (const auto& [name, value] : logged.event.fields) {
    if (const auto number = number_of(value)) set_number(name, step, *number);
  }
  const auto& fields = logged.event.fields;
  if (std::find(fields.begin(), fields.end(), std::pair("kind"s, Value("train"s))) == fields.end()) return;
  events_have_steps_ = true;
  history_.last_step = step;
  take_time(time, step);
}

void RunReader::set_number(std::string_view name, int64_t step, double value) {
  if (name == "val_loss") {
    history_.validation_loss.set(step, value);
  } else if (name == "slowest_rank") {
    if (value >= 0.0 && value < kMostRanks) ++history_.slowest_ranks[static_cast<int64_t>(value)];
  } else if (name == "skipped") {
    history_.skipped_steps += value != 0.0 ? 1 : 0;
  } else if (name == "consumed_samples") {
    history_.consumed_samples = value;
  } else if (name.starts_with(kMemory)) {
    std::string arena(name.substr(kMemory.size()));
    std::replace(arena.begin(), arena.end(), '_', ' ');
    history_.memory[arena] = value;
  } else if (std::find(std::begin(kCurves), std::end(kCurves), name) != std::end(kCurves)) {
    history_.curves[std::string(name)].set(step, value);
  }
}

void RunReader::take_span(const LoggedEvent& logged) {
  // Spans are told apart by the process that began them, since each counts its ids from one.
  const Event& event = logged.event;
  if (event.phase == Phase::instant) return;
  const SpanKey key(logged.node, logged.boot, logged.generation, event.id, event.name);
  SpanTotal& total = history_.spans[event.name];
  if (event.phase == Phase::begin) {
    if (open_spans_.insert(key).second) ++total.open;
    return;
  }
  if (open_spans_.erase(key) > 0) --total.open;
  ++total.ended;
  total.seconds += event.duration;
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
    const std::string_view name = member.key == "train_step_timing in s" ? "step_time" : member.key;
    set_number(name, *number, number_of(member).value_or(kNan));
    if (name == "reduced_train_loss") history_.last_step = number;
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
