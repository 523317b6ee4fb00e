#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/clock.h"
#include "observe/draw/styled_line.h"
#include "observe/draw/text_table.h"
#include "observe/goodput/goodput.h"
#include "observe/sinks/python_json.h"

namespace megalith::observe {

using nlohmann::ordered_json;

namespace {
constexpr int64_t kReasonColumns = 60;
constexpr size_t kIncidentsShown = 100;

// As Python prints round(number, 2): 9.8, not 9.80.
std::string two_decimals(double number) {
  return python_repr(std::stod(fmt::format("{:.2f}", number)));
}

std::string step_text(const RunEvents& log, int64_t step) {
  return fmt::format("{}{}", step, log.steps_are_floats ? ".0" : "");
}

ordered_json step_json(const RunEvents& log, int64_t step) {
  if (log.steps_are_floats) return static_cast<double>(step);
  return step;
}

std::string percent(double part, double whole) {
  return fmt::format("{:.2f}%", whole > 0.0 ? part / whole * 100.0 : 0.0);
}

ordered_json seconds_json(const UseSeconds& seconds) {
  ordered_json object;
  for (size_t use = 0; use < kTimeUses; ++use) object[std::string(name_of(static_cast<TimeUse>(use)))] = seconds[use];
  return object;
}

// The longest ones, in the order of time.
std::vector<Incident> longest(std::vector<Incident> incidents, size_t count) {
  if (incidents.size() <= count) return incidents;
  const auto length = [](const Incident& incident) { return incident.end - incident.begin; };
  std::nth_element(incidents.begin(), incidents.begin() + static_cast<std::ptrdiff_t>(count), incidents.end(),
                   [&](const Incident& a, const Incident& b) { return length(a) > length(b); });
  incidents.resize(count);
  std::sort(incidents.begin(), incidents.end(), [](const Incident& a, const Incident& b) { return a.begin < b.begin; });
  return incidents;
}

std::string incident_table(const std::vector<Incident>& incidents) {
  TextRow header{"incident", "last step", "resumed at", "lost"};
  std::vector<TimeUse> shown;
  for (size_t use = 0; use < kTimeUses; ++use) {
    double total = 0.0;
    for (const Incident& incident : incidents) total += incident.seconds[use];
    if (total == 0.0) continue;
    shown.push_back(static_cast<TimeUse>(use));
    header.emplace_back(label_of(shown.back()));
  }
  header.emplace_back("reason");
  std::vector<TextRow> rows;
  for (const Incident& incident : incidents) {
    TextRow row{utc_timestamp(incident.begin).substr(0, 19), std::to_string(incident.last_step),
                incident.resumed_step < 0 ? "-" : std::to_string(incident.resumed_step),
                fmt::format("{:.1f}", incident.end - incident.begin)};
    for (const TimeUse use : shown) row.push_back(fmt::format("{:.1f}", incident.seconds[static_cast<size_t>(use)]));
    row.emplace_back(truncate_utf8(incident.reason, kReasonColumns));
    rows.push_back(std::move(row));
  }
  return plain_table(header, rows);
}
}  // namespace

std::string goodput_table(const RunEvents& log, const Goodput& goodput) {
  std::vector<TextRow> rows{{"Total Events", std::to_string(goodput.events)},
                            {"Job Started Count", std::to_string(goodput.starts)},
                            {"Checkpoints Loaded", std::to_string(goodput.loads)},
                            {"Checkpoints Saved", std::to_string(goodput.saves)}};
  if (goodput.runtime_seconds > 0.0)
    rows.push_back({"Total Runtime (hours)", two_decimals(goodput.runtime_seconds / 3600.0)});
  if (goodput.progress) {
    const Goodput::Progress& progress = *goodput.progress;
    rows.push_back({"Min Loaded Step", step_text(log, progress.min_loaded_step)});
    rows.push_back({"Max Saved Step", step_text(log, progress.max_saved_step)});
    rows.push_back({"Step Difference", step_text(log, progress.steps())});
    if (progress.effective_seconds > 0.0)
      rows.push_back({"Effective Computation Time (hours)", two_decimals(progress.effective_seconds / 3600.0)});
  }
  rows.push_back({"Goodput Percentage", goodput.has_reference ? fmt::format("{:.2f}%", goodput.percentage())
                                                              : "needs --reference-step-time"});
  return fmt::format("\n=== Goodput Analysis for Job: {} ===\n\n{}", log.job, grid_table({"Metric", "Value"}, rows));
}

std::string wall_time_tables(const WallTime& wall) {
  std::vector<TextRow> rows;
  for (size_t use = 0; use < kTimeUses; ++use) {
    const double seconds = wall.seconds[use];
    if (seconds == 0.0 && is_of_supervisor(static_cast<TimeUse>(use))) continue;
    rows.push_back({std::string(label_of(static_cast<TimeUse>(use))), fmt::format("{:.3f}", seconds),
                    percent(seconds, wall.total())});
  }
  rows.push_back({"total", fmt::format("{:.3f}", wall.total()), percent(wall.total(), wall.total())});
  std::string text = plain_table({"wall time", "seconds", "share"}, rows);
  if (wall.incidents.empty()) return text;
  const size_t count = wall.incidents.size();
  const std::string which = count > kIncidentsShown ? fmt::format(", the {} longest", kIncidentsShown) : "";
  return text + fmt::format("\n{} incident{}{} (seconds, times in UTC)\n{}", count, count == 1 ? "" : "s", which,
                            incident_table(longest(wall.incidents, kIncidentsShown)));
}

std::string slice_table(const WallTime& wall) {
  std::vector<TextRow> rows;
  for (const TimeSlice& slice : wall.slices) {
    rows.push_back({utc_timestamp(slice.begin), fmt::format("{:.3f}", slice.end - slice.begin),
                    slice.step < 0 ? "-" : std::to_string(slice.step), std::string(label_of(slice.use))});
  }
  return plain_table({"from", "seconds", "step", "use"}, rows);
}

ordered_json goodput_json(const RunEvents& log, const Goodput& goodput, const WallTime& wall) {
  ordered_json json = {{"total_events", goodput.events},
                       {"job_started_count", goodput.starts},
                       {"checkpoints_loaded", goodput.loads},
                       {"checkpoints_saved", goodput.saves},
                       {"total_runtime_seconds", goodput.runtime_seconds},
                       {"useful_runtime_seconds", 0},
                       {"effective_computation_time", 0},
                       {"goodput_percentage", 0},
                       {"job_intervals", ordered_json::array()},
                       {"checkpoint_intervals", ordered_json::array()}};
  if (goodput.progress) {
    json["effective_computation_time"] = goodput.progress->effective_seconds;
    json["goodput_percentage"] = goodput.percentage();
    json["step_diff"] = step_json(log, goodput.progress->steps());
    json["min_loaded_step"] = step_json(log, goodput.progress->min_loaded_step);
    json["max_saved_step"] = step_json(log, goodput.progress->max_saved_step);
  }
  ordered_json incidents = ordered_json::array();
  for (const Incident& incident : wall.incidents) {
    incidents.push_back({{"begin", utc_timestamp(incident.begin)},
                         {"end", utc_timestamp(incident.end)},
                         {"reason", incident.reason},
                         {"last_step", incident.last_step},
                         {"resumed_step", incident.resumed_step},
                         {"seconds", seconds_json(incident.seconds)}});
  }
  json["wall_time"] = {{"begin", utc_timestamp(wall.begin)},
                       {"end", utc_timestamp(wall.end)},
                       {"reference_step_time", wall.reference_step_time},
                       {"kept_steps", wall.kept_steps},
                       {"productive_percentage", wall.productive_fraction() * 100.0},
                       {"seconds", seconds_json(wall.seconds)},
                       {"incidents", incidents}};
  return json;
}

}  // namespace megalith::observe
