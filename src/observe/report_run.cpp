#include "observe/report_run.h"

#include <fmt/format.h>

#include <set>

#include "observe/event_reader.h"

namespace megalith::observe {

namespace fs = std::filesystem;

namespace {

std::string last_parts(const fs::path& path, int count) {
  fs::path name = path.filename();
  fs::path parent = path.parent_path();
  for (int i = 1; i < count && parent.has_filename(); ++i, parent = parent.parent_path())
    name = parent.filename() / name;
  return name.string();
}

}  // namespace

ReportedRun reported_run(const fs::path& directory, std::string name) {
  ReportedRun run{.name = std::move(name), .history = read_run_history(directory), .wall_time = {}};
  const fs::path events = directory / "events.jsonl";
  if (fs::exists(events)) run.wall_time = explain_wall_time(read_run_events(events, run.history.run_id));
  return run;
}

std::vector<std::string> names_of(const std::vector<fs::path>& directories) {
  std::vector<std::string> names;
  for (int parts = 1; parts < 8; ++parts) {
    names.clear();
    for (const fs::path& directory : directories) {
      std::error_code ignored;
      fs::path absolute = fs::weakly_canonical(directory, ignored);
      if (!absolute.has_filename()) absolute = absolute.parent_path();
      names.push_back(last_parts(absolute, parts));
    }
    if (std::set<std::string>(names.begin(), names.end()).size() == names.size()) break;
  }
  return names;
}

std::vector<Point> throughput_of(const RunHistory& history) {
  const Curve& logged = history.curve("tokens_per_second");
  if (!logged.empty()) return logged.points();
  const auto tokens = history.tokens_per_step();
  if (!tokens) return {};
  std::vector<Point> points = history.curve("step_time").points();
  for (Point& point : points) point.y = *tokens / point.y;
  return points;
}

std::string state_of(const RunHistory& history) {
  if (history.complete()) return "complete";
  if (history.end) return history.end->reason.empty() ? "ended" : fmt::format("ended early: {}", history.end->reason);
  return history.starts.empty() ? "" : "not ended";
}

}  // namespace megalith::observe
