#include "observe/report/report_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "core/metric_names.h"
#include "observe/logs/event_reader.h"
#include "observe/logs/line_reader.h"

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
  // Where a log holds several runs, the wall time is that of the last one.
  std::map<std::string, EventCollector> collectors;
  ReportedRun run{.name = std::move(name), .wall_time = {}};
  run.history = read_run_history(directory, [&](const EventLine& line) {
    const std::string run_id = text_of(line.run);
    collectors.try_emplace(run_id, run_id).first->second.take(line);
  });
  for (const fs::path& journal : journals_of(directory)) {
    LineReader reader(journal);
    std::vector<JsonMember> members;
    while (const auto line = reader.next()) {
      const std::optional<EventLine> fact = parse_event_line(*line, members);
      if (!fact) continue;
      const auto collector = collectors.find(text_of(fact->run));
      if (collector != collectors.end()) collector->second.take(*fact);
    }
  }
  if (const auto last = collectors.find(run.history.run_id); last != collectors.end())
    run.wall_time = explain_wall_time(std::move(last->second).finish());
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

bool counts_tokens(const std::vector<ReportedRun>& runs) {
  const auto tokens = runs.front().history.tokens_per_step();
  const auto differ = [&](const ReportedRun& run) { return run.history.tokens_per_step() != tokens; };
  const auto known = [](const ReportedRun& run) { return run.history.tokens_per_step().has_value(); };
  return std::all_of(runs.begin(), runs.end(), known) && std::any_of(runs.begin(), runs.end(), differ);
}

std::vector<Point> throughput_of(const RunHistory& history) {
  const Curve& logged = history.curve(metric::kTokensPerSecond);
  if (!logged.empty()) return logged.points();
  const auto tokens = history.tokens_per_step();
  if (!tokens) return {};
  std::vector<Point> points = history.curve(metric::kStepTime).points();
  for (Point& point : points) point.y = *tokens / point.y;
  return points;
}

std::string state_of(const RunHistory& history) {
  if (history.complete()) return "complete";
  if (history.end) return history.end->reason.empty() ? "ended" : fmt::format("ended early: {}", history.end->reason);
  return history.starts.empty() ? "" : "not ended";
}

}  // namespace megalith::observe
