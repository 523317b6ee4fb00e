#include "observe/logs/event_reader.h"

#include <algorithm>
#include <cmath>
#include <tuple>

#include "core/event_names.h"
#include "core/metric_names.h"
#include "core/run_folders.h"
#include "observe/logs/line_reader.h"
#include "observe/logs/timestamp.h"

namespace megalith::observe {

namespace {
constexpr size_t kFirstLimit = size_t{1} << 20;
constexpr size_t kJobsNamed = 100;
constexpr size_t kReasonsKept = 10'000;
constexpr size_t kReasonLength = 300;
constexpr double kMicros = 1e6;
constexpr double kLongestSpan = 1e9;  // seconds; what claims more is no measurement

// The last one counts, as with every reader of JSON.
const JsonMember* find(const std::vector<JsonMember>& members, std::string_view key, std::string_view parent = "") {
  const auto found = std::find_if(members.rbegin(), members.rend(),
                                  [&](const JsonMember& m) { return m.key == key && m.parent == parent; });
  return found == members.rend() ? nullptr : &*found;
}

float plausible_seconds(std::optional<double> seconds) {
  return seconds && *seconds > 0.0 && *seconds < kLongestSpan ? static_cast<float>(*seconds) : 0.0F;
}

std::optional<RunEventKind> kind_of_google(std::string_view type) {
  if (type == event::kUserScheduled) return RunEventKind::scheduled;
  if (type == event::kJobStarted) return RunEventKind::started;
  if (type == event::kCheckpointLoaded) return RunEventKind::loaded;
  if (type == event::kCheckpointSaved) return RunEventKind::saved;
  if (type == event::kUserTerminated) return RunEventKind::stopped;
  if (type == event::kJobTerminated) return RunEventKind::terminated;
  return std::nullopt;
}

std::optional<RunEventKind> kind_of_megalith(std::string_view name) {
  if (name == event::kMetrics) return RunEventKind::train_step;
  if (name == event::kCheckpointLoad) return RunEventKind::load;
  if (name == event::kCheckpointSave) return RunEventKind::save;
  if (name == event::kValidation) return RunEventKind::validation;
  return kind_of_google(name);
}

bool comes_from_every_node(RunEventKind kind) {
  return kind == RunEventKind::started || kind == RunEventKind::terminated;
}

bool is_before(const RunEvent& a, const RunEvent& b) {
  return std::tie(a.micros, a.kind, a.step, a.open) < std::tie(b.micros, b.kind, b.step, b.open);
}
}  // namespace

EventCollector::EventCollector(std::string job) : limit_(kFirstLimit) {
  log_.job = std::move(job);
}

void EventCollector::take(std::string_view line) {
  if (const std::optional<EventLine> event = parse_event_line(line, members_)) return take(*event);
  ++log_.lines;
  const bool is_googles = !has_crc(line) && scan_json_object(line, members_) && take_google();
  if (!is_googles) ++log_.bad_lines;
}

bool EventCollector::is_wanted(const JsonMember& job) {
  if (last_count_ == nullptr || job.text != last_job_) {
    last_job_ = job.text;
    const std::string name = text_of(job);
    if (log_.job.empty()) log_.job = name;
    last_wanted_ = name == log_.job;
    const bool crowded = log_.jobs.size() >= kJobsNamed && !log_.jobs.contains(name);
    last_count_ = &log_.jobs[crowded ? "(others)" : name];
  }
  ++*last_count_;
  return last_wanted_;
}

void EventCollector::keep(const RunEvent& event) {
  if (log_.events.size() >= limit_) {
    sort_and_thin();
    limit_ = std::max(limit_, 2 * log_.events.size());
  }
  log_.events.push_back(event);
}

uint32_t EventCollector::keep_reason(const JsonMember& reason) {
  if (reason.text.empty() || log_.reasons.size() >= kReasonsKept) return 0;
  log_.reasons.push_back(text_of(reason).substr(0, kReasonLength));
  return static_cast<uint32_t>(log_.reasons.size() - 1);
}

// False for a line that it does not understand.
bool EventCollector::take_google() {
  // An entry exported from Cloud Logging carries the event as its payload.
  const char* parent = find(members_, "event_type") == nullptr ? "jsonPayload" : "";
  const JsonMember* type = find(members_, "event_type", parent);
  const JsonMember* job = find(members_, "job_name", parent);
  const JsonMember* time = find(members_, "timestamp", parent);
  if (type == nullptr || job == nullptr || time == nullptr) return false;
  const std::optional<RunEventKind> kind = kind_of_google(type->text);
  const std::optional<int64_t> micros = parse_timestamp(time->text);
  const JsonMember* step = find(members_, "step", parent);
  const std::optional<int64_t> steps = step == nullptr ? 0 : whole_number_of(*step);
  if (!kind || !micros || !steps || *steps < 0) return false;
  if (!is_wanted(*job)) return true;
  log_.format = EventFormat::google;
  const bool counts_steps = *kind == RunEventKind::loaded || *kind == RunEventKind::saved;
  if (counts_steps && step != nullptr && step->text.find('.') != std::string_view::npos) log_.steps_are_floats = true;
  keep({.micros = *micros, .step = counts_steps ? *steps : -1, .kind = *kind});
  return true;
}

void EventCollector::take(const EventLine& line) {
  ++log_.lines;
  if (!is_wanted(line.run)) return;
  log_.format = EventFormat::megalith;
  const int64_t micros = clocks_.align({.boot = line.boot,
                                        .wall = line.wall,
                                        .monotonic = std::llround(line.monotonic * kMicros),
                                        .generation = line.generation});
  if (line.event == event::kFact) return take_fact(line, micros);
  const std::optional<RunEventKind> kind = kind_of_megalith(line.event);
  if (!kind || (line.rank != 0 && !comes_from_every_node(*kind))) return;

  RunEvent event{.micros = micros, .step = line.step, .kind = *kind, .open = line.phase == Phase::begin};
  if (*kind == RunEventKind::train_step) {
    const JsonMember* metrics = line.field(event::kKind);
    if (metrics == nullptr || metrics->text != metric::kTrain) return;
    event.seconds = plausible_seconds(line.number(metric::kStepTime));
    event.data_wait = plausible_seconds(line.number(metric::kDataWait));
  } else {
    event.seconds = plausible_seconds(line.duration);
  }
  if (*kind == RunEventKind::terminated) {
    // A job that fails does not say how far it came.
    event.planned = line.step >= 0;
    event.reason = keep_reason(line.reason);
  }
  keep(event);
}

// The facts of a supervisor that changed its mind, in their order.
void EventCollector::take_fact(const EventLine& line, int64_t micros) {
  const auto word = [&](std::string_view field) {
    const JsonMember* member = line.field(field);
    return member == nullptr ? std::string_view() : member->text;
  };
  const std::string_view kind = word(event::kKind);
  if (kind == "lead" && line.number("number") == 1.0) keep({.micros = micros, .kind = RunEventKind::scheduled});
  if (kind == "stop_requested") keep({.micros = micros, .kind = RunEventKind::stopped});
  std::vector<Recovery>& all = log_.recoveries;
  const bool is_open = !all.empty() && all.back().placed < 0;
  if (kind == "fault" && !is_open) all.push_back({.noticed = micros, .reason = keep_reason(line.reason)});
  if (!is_open) return;
  Recovery& recovery = all.back();
  if (kind == "tick" && recovery.decided < 0) recovery.decided = micros;
  if (kind == "order_done" && word("order") == "kill") recovery.stopped = micros;
  if (kind == "checked") recovery.checked = micros;
  if (kind == "claimed") recovery.placed = micros;
}

void EventCollector::sort_and_thin() {
  std::vector<RunEvent>& events = log_.events;
  std::sort(events.begin(), events.end(), is_before);
  size_t kept = 0;
  for (const RunEvent& event : events) {
    const bool from_nodes = comes_from_every_node(event.kind);
    if (kept > 0 && event == events[kept - 1]) {
      if (!from_nodes) ++log_.duplicate_lines;
      continue;
    }
    const bool third =
        from_nodes && kept > 1 && events[kept - 1].kind == event.kind && events[kept - 2].kind == event.kind;
    if (third) --kept;
    events[kept++] = event;
  }
  events.resize(kept);
}

RunEvents EventCollector::finish() && {
  sort_and_thin();
  log_.clock_steps = clocks_.steps();
  return std::move(log_);
}

RunEvents read_run_events(const std::filesystem::path& file, const std::string& job) {
  std::vector<std::filesystem::path> files{file};
  if (file.filename() == "events.jsonl") {
    for (std::filesystem::path& journal : journals_of(file.parent_path())) files.push_back(std::move(journal));
  }
  EventCollector collector(job);
  int64_t overlong = 0;
  for (const std::filesystem::path& each : files) {
    LineReader reader(each);
    while (const auto line = reader.next()) collector.take(*line);
    overlong += reader.overlong_lines();
  }
  RunEvents log = std::move(collector).finish();
  log.lines += overlong;
  log.bad_lines += overlong;
  return log;
}

std::vector<std::filesystem::path> journals_of(const std::filesystem::path& run_directory) {
  std::vector<std::filesystem::path> journals;
  std::error_code none;
  for (const auto& entry : std::filesystem::directory_iterator(run_directory / kControlFolder, none)) {
    if (entry.path().extension() == ".jsonl") journals.push_back(entry.path());
  }
  std::sort(journals.begin(), journals.end());
  return journals;
}

}  // namespace megalith::observe
