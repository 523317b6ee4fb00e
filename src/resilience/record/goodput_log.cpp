#include "resilience/record/goodput_log.h"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "core/clock.h"
#include "core/error.h"
#include "core/event_names.h"
#include "core/run_folders.h"
#include "observe/logs/event_reader.h"
#include "resilience/facts.h"
#include "resilience/record/control_directory.h"
#include "resilience/record/roster.h"

namespace megalith::resilience {

namespace {
constexpr double kMicros = 1e6;

File open(const std::filesystem::path& path) {
  try {
    return File::open_for_appending(path);
  } catch (const Error& error) {
    user_error("resilience.goodput_log: {}", error.what());
  }
}

// Without the zone's letter, as Python writes the time of day.
std::string naive_time(int64_t micros) {
  std::string text = utc_timestamp(static_cast<double>(micros) / kMicros);
  text.resize(text.size() - 1);
  return text;
}
}  // namespace

GoodputLog::GoodputLog(const std::filesystem::path& path, std::filesystem::path run_directory, std::string job)
    : path_(path), run_directory_(std::move(run_directory)), job_(std::move(job)), file_(open(path)) {
  begin();
}

// Every kind of line comes from one place, in its order: those that are there already are the first that come again.
void GoodputLog::begin() {
  known_.clear();
  tails_.clear();
  clocks_ = {};
  observe::LineTail written(path_);
  bool has_no_end = false;
  const auto count = [&](std::string_view line) {
    const nlohmann::json event = nlohmann::json::parse(line, nullptr, false);
    has_no_end = true;
    if (event.is_object() && event.value("job_name", "") == job_) ++known_[event.value("event_type", "")];
  };
  written.poll(count);
  has_no_end = false;
  written.finish(count);
  if (has_no_end) file_.write("\n");
}

void GoodputLog::follow() {
  std::vector<std::filesystem::path> sources = observe::journals_of(run_directory_);
  sources.push_back(run_directory_ / "events.jsonl");
  for (const std::filesystem::path& source : sources) {
    observe::LineTail& tail = tails_.try_emplace(source, source).first->second;
    if (!tail.poll([this](std::string_view line) { take(line); })) return begin();
  }
}

void GoodputLog::take(std::string_view line) {
  const std::optional<observe::EventLine> event = observe::parse_event_line(line, scratch_);
  if (!event || text_of(event->run) != job_) return;
  if (event->event == event::kFact) return take_fact(*event);
  const bool is_of_node = event->event == event::kJobStarted || event->event == event::kJobTerminated;
  const bool is_of_step = event->event == event::kCheckpointLoaded || event->event == event::kCheckpointSaved;
  if (event->rank != 0 || (!is_of_node && !is_of_step)) return;
  const int64_t micros = clocks_.align({.boot = event->boot,
                                        .wall = event->wall,
                                        .monotonic = std::llround(event->monotonic * kMicros),
                                        .generation = event->generation});
  if (is_of_step) return add(event->event, fmt::format(R"("step": {})", event->step), micros);
  for (int64_t node = 0; node < nodes_of(event->generation); ++node)
    add(event->event, fmt::format(R"("node_rank": {})", node), micros);
}

void GoodputLog::take_fact(const observe::EventLine& line) {
  const observe::JsonMember* const kind = line.field(event::kKind);
  if (kind == nullptr) return;
  const bool schedules = kind->text == name_of(FactKind::lead) && line.number("number") == 1.0;
  if (!schedules && kind->text != name_of(FactKind::stop_requested)) return;
  add(schedules ? event::kUserScheduled : event::kUserTerminated, "",
      clocks_.align({.boot = line.boot,
                     .wall = line.wall,
                     .monotonic = std::llround(line.monotonic * kMicros),
                     .generation = line.generation}));
}

// A run that began without a supervisor has generations without rosters, which were one node's.
int64_t GoodputLog::nodes_of(int64_t generation) {
  if (generation == generation_) return nodes_;
  generation_ = generation;
  nodes_ = 1;
  const std::filesystem::path roster = run_directory_ / kControlFolder / roster_file_name(generation);
  if (size_if_there(roster) >= 0) nodes_ = std::ssize(parse_roster(read_text(roster), roster.string()).nodes);
  return nodes_;
}

void GoodputLog::add(std::string_view event, const std::string& more, int64_t micros) {
  if (const auto known = known_.find(event); known != known_.end() && known->second > 0) {
    --known->second;
    return;
  }
  file_.write(fmt::format(R"({{"timestamp": "{}", "job_name": {}, "event_type": "{}"{}{}}})"
                          "\n",
                          naive_time(micros), nlohmann::json(job_).dump(), event, more.empty() ? "" : ", ", more));
}

}  // namespace megalith::resilience
