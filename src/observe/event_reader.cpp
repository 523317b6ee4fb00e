#include "observe/event_reader.h"

#include <xxhash.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <tuple>

#include "observe/line_reader.h"
#include "observe/timestamp.h"

namespace megalith::observe {

namespace {
constexpr size_t kFirstLimit = size_t{1} << 20;
constexpr size_t kJobsNamed = 100;
constexpr size_t kReasonsKept = 10'000;
constexpr size_t kReasonLength = 300;
constexpr double kMicros = 1e6;
constexpr double kLongestSpan = 1e9;  // seconds; what claims more is no measurement

// The end of a line of events.jsonl: ,"crc":"0123456789abcdef"}
constexpr std::string_view kCrcKey = ",\"crc\":\"";
constexpr size_t kCrcDigits = 16;

bool has_crc(std::string_view line) {
  const size_t tail = kCrcKey.size() + kCrcDigits + 2;
  return line.size() > tail && line.substr(line.size() - tail).starts_with(kCrcKey);
}

bool crc_fits(std::string_view line) {
  const std::string_view digits = line.substr(line.size() - kCrcDigits - 2, kCrcDigits);
  uint64_t written = 0;
  const auto [rest, error] = std::from_chars(digits.data(), digits.data() + digits.size(), written, 16);
  if (error != std::errc() || rest != digits.data() + digits.size()) return false;
  return written == XXH3_64bits(line.data(), line.size() - kCrcKey.size() - kCrcDigits - 2);
}

// The last one counts, as with every reader of JSON.
const JsonMember* find(const std::vector<JsonMember>& members, std::string_view key, std::string_view parent = "") {
  const auto found = std::find_if(members.rbegin(), members.rend(),
                                  [&](const JsonMember& m) { return m.key == key && m.parent == parent; });
  return found == members.rend() ? nullptr : &*found;
}

float seconds_in(const JsonMember* member) {
  const std::optional<double> seconds = member == nullptr ? std::nullopt : number_of(*member);
  return seconds && *seconds > 0.0 && *seconds < kLongestSpan ? static_cast<float>(*seconds) : 0.0F;
}

std::optional<RunEventKind> kind_of_google(std::string_view type) {
  if (type == "user_scheduled") return RunEventKind::scheduled;
  if (type == "job_started") return RunEventKind::started;
  if (type == "checkpoint_loaded") return RunEventKind::loaded;
  if (type == "checkpoint_saved") return RunEventKind::saved;
  if (type == "user_terminated") return RunEventKind::stopped;
  if (type == "job_terminated") return RunEventKind::terminated;
  return std::nullopt;
}

std::optional<RunEventKind> kind_of_megalith(std::string_view name) {
  if (name == "metrics") return RunEventKind::train_step;
  if (name == "checkpoint_load") return RunEventKind::load;
  if (name == "checkpoint_save") return RunEventKind::save;
  if (name == "validation") return RunEventKind::validation;
  return kind_of_google(name);
}

struct MegalithLine {
  const JsonMember* run = nullptr;
  std::string_view event;
  BootClocks::Reading clock;
  int64_t step = -1;
  bool begins = false;  // a span
  bool is_of_rank_0 = true;
};

std::optional<MegalithLine> megalith_line(const std::vector<JsonMember>& members) {
  const JsonMember* run = find(members, "run");
  const JsonMember* event = find(members, "event");
  const JsonMember* phase = find(members, "phase");
  const JsonMember* time = find(members, "time");
  const JsonMember* monotonic = find(members, "mono");
  const JsonMember* boot = find(members, "boot");
  const JsonMember* generation = find(members, "generation");
  const JsonMember* step = find(members, "step");
  const JsonMember* rank = find(members, "rank");
  for (const JsonMember* needed : {run, event, phase, time, monotonic, boot, generation, step, rank}) {
    if (needed == nullptr) return std::nullopt;
  }
  const std::optional<int64_t> wall = parse_timestamp(time->text);
  const std::optional<double> seconds = number_of(*monotonic);
  const std::optional<int64_t> starts = whole_number_of(*generation);
  const std::optional<int64_t> steps = whole_number_of(*step);
  if (!wall || !seconds || !(std::abs(*seconds) < kLongestSpan) || !starts || !steps || *steps < -1)
    return std::nullopt;
  return MegalithLine{.run = run,
                      .event = event->text,
                      .clock = {.boot = boot->text,
                                .wall = *wall,
                                .monotonic = std::llround(*seconds * kMicros),
                                .generation = *starts},
                      .step = *steps,
                      .begins = phase->text == "begin",
                      .is_of_rank_0 = rank->text == "0"};
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
  ++log_.lines;
  const bool ours = has_crc(line);
  const bool good = (!ours || crc_fits(line)) && scan_json_object(line, members_);
  if (!good || !(ours ? take_megalith() : take_google())) ++log_.bad_lines;
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

bool EventCollector::keep(const RunEvent& event) {
  if (log_.events.size() >= limit_) {
    sort_and_thin();
    limit_ = std::max(limit_, 2 * log_.events.size());
  }
  log_.events.push_back(event);
  return true;
}

uint32_t EventCollector::keep_reason(const JsonMember& reason) {
  if (reason.text.empty() || log_.reasons.size() >= kReasonsKept) return 0;
  log_.reasons.push_back(text_of(reason).substr(0, kReasonLength));
  return static_cast<uint32_t>(log_.reasons.size() - 1);
}

// Each answers false for a line that it does not understand.
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
  return keep({.micros = *micros, .step = counts_steps ? *steps : -1, .kind = *kind});
}

bool EventCollector::take_megalith() {
  const std::optional<MegalithLine> line = megalith_line(members_);
  if (!line) return false;
  if (!is_wanted(*line->run)) return true;
  log_.format = EventFormat::megalith;
  const int64_t micros = clocks_.align(line->clock);
  const std::optional<RunEventKind> kind = kind_of_megalith(line->event);
  if (!kind || (!line->is_of_rank_0 && !comes_from_every_node(*kind))) return true;

  RunEvent event{.micros = micros, .step = line->step, .kind = *kind, .open = line->begins};
  if (*kind == RunEventKind::train_step) {
    const JsonMember* metrics = find(members_, "kind", "fields");
    if (metrics == nullptr || metrics->text != "train") return true;
    event.seconds = seconds_in(find(members_, "step_time", "fields"));
    event.data_wait = seconds_in(find(members_, "data_wait", "fields"));
  } else {
    event.seconds = seconds_in(find(members_, "duration"));
  }
  if (*kind == RunEventKind::terminated) {
    // A job that fails does not say how far it came.
    event.planned = line->step >= 0;
    if (const JsonMember* reason = find(members_, "reason")) event.reason = keep_reason(*reason);
  }
  return keep(event);
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

bool is_intact_event_line(std::string_view line) {
  return has_crc(line) && crc_fits(line);
}

RunEvents read_run_events(const std::filesystem::path& file, const std::string& job) {
  LineReader reader(file);
  EventCollector collector(job);
  while (const auto line = reader.next()) collector.take(*line);
  RunEvents log = std::move(collector).finish();
  log.lines += reader.overlong_lines();
  log.bad_lines += reader.overlong_lines();
  return log;
}

}  // namespace megalith::observe
