#include "observe/run_history.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>

#include "core/file.h"
#include "observe/events.h"

namespace megalith::observe {

namespace fs = std::filesystem;
using nlohmann::ordered_json;

namespace {
template <class Use>
void for_each_line(const fs::path& path, Use&& use) {
  std::ifstream file(path, std::ios::binary);
  for (std::string line; std::getline(file, line);) {
    if (!line.empty()) use(line);
  }
}

// Python's bare NaN and Infinity are no JSON.
std::string without_bare_words(std::string text) {
  for (const char* word : {": NaN", ": Infinity", ": -Infinity"}) {
    for (size_t at = text.find(word); at != std::string::npos; at = text.find(word, at)) {
      text.replace(at, std::char_traits<char>::length(word), ": null");
    }
  }
  return text;
}

void take(const ordered_json& data, const char* key, int64_t step, std::map<int64_t, double>& into) {
  const auto found = data.find(key);
  if (found == data.end()) return;
  into[step] = found->is_number() ? found->get<double>() : std::numeric_limits<double>::quiet_NaN();
}

void read_dllogger(const fs::path& path, RunHistory& history) {
  for_each_line(path, [&](const std::string& line) {
    ordered_json record;
    if (line.starts_with("DLLL ")) record = ordered_json::parse(without_bare_words(line.substr(5)), nullptr, false);
    if (!record.is_object() || !record.contains("step") || !record.contains("data") || !record["data"].is_object()) {
      ++history.unreadable_lines;
      return;
    }
    const ordered_json& data = record["data"];
    if (record["step"] == "PARAMETER")
      history.config = data.dump(2, ' ', false, ordered_json::error_handler_t::replace);
    if (!record["step"].is_number_integer()) return;
    const auto step = record["step"].get<int64_t>();
    take(data, "reduced_train_loss", step, history.train_loss);
    take(data, "val_loss", step, history.validation_loss);
    take(data, "train_step_timing in s", step, history.step_seconds);
  });
}

std::optional<double> number(const Fields& fields, std::string_view key) {
  for (const auto& [name, value] : fields) {
    if (name != key) continue;
    if (const auto* real = std::get_if<double>(&value)) return *real;
    if (const auto* whole = std::get_if<int64_t>(&value)) return static_cast<double>(*whole);
  }
  return std::nullopt;
}

void read_events(const fs::path& path, RunHistory& history) {
  std::map<int64_t, double> step_seconds;
  // Spans are told apart by the process that began them, since each counts its ids from one.
  std::set<std::tuple<std::string, std::string, int64_t, int64_t, std::string>> open;
  for_each_line(path, [&](const std::string& line) {
    const std::optional<LoggedEvent> logged = parse_event_line(line);
    if (!logged) {
      ++history.unreadable_lines;
      return;
    }
    const Event& event = logged->event;
    history.run_id = logged->run_id;
    if (history.first_time.empty()) history.first_time = logged->time;
    history.last_time = logged->time;
    if (event.name == "metrics") {
      if (const auto value = number(event.fields, "tokens_per_second")) history.tokens_per_second[event.step] = *value;
      if (const auto value = number(event.fields, "tflops")) history.tflops[event.step] = *value;
      if (const auto value = number(event.fields, "step_time")) step_seconds[event.step] = *value;
      return;
    }
    const auto key = std::tuple(logged->node, logged->boot, logged->generation, event.id, event.name);
    if (event.phase == Phase::begin) open.insert(key);
    if (event.phase == Phase::end) {
      open.erase(key);
      SpanTotal& total = history.spans[event.name];
      ++total.ended;
      total.seconds += event.duration;
    }
  });
  for (const auto& key : open) ++history.spans[std::get<4>(key)].open;
  // dllogger.json holds a moving mean; the events hold the step itself.
  if (!step_seconds.empty()) history.step_seconds = std::move(step_seconds);
}
}  // namespace

RunHistory read_run_history(const fs::path& run_directory) {
  RunHistory history;
  const fs::path nested = run_directory / "dllogger" / "rank-0" / "dllogger.json";
  read_dllogger(fs::exists(nested) ? nested : run_directory / "dllogger.json", history);
  read_events(run_directory / "events.jsonl", history);
  if (fs::exists(run_directory / "hparams.yaml")) history.config = read_text(run_directory / "hparams.yaml");
  return history;
}

std::vector<Point> to_points(const std::map<int64_t, double>& values) {
  std::vector<Point> points;
  for (const auto& [step, value] : values) points.push_back({.x = static_cast<double>(step), .y = value});
  return points;
}

std::optional<double> median(const std::map<int64_t, double>& values) {
  std::vector<double> sorted;
  for (const auto& [step, value] : values) {
    if (std::isfinite(value)) sorted.push_back(value);
  }
  if (sorted.empty()) return std::nullopt;
  const auto middle = sorted.begin() + static_cast<std::ptrdiff_t>(sorted.size() / 2);
  std::nth_element(sorted.begin(), middle, sorted.end());
  return *middle;
}

}  // namespace megalith::observe
