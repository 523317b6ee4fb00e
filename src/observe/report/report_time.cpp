#include "observe/report/report_time.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/words.h"
#include "observe/draw/palette.h"

namespace megalith::observe {

namespace {

constexpr const char* kTime = "Time";
constexpr size_t kColumns = 160;

std::vector<TimeUse> uses_by_size(const WallTime& wall_time) {
  std::vector<TimeUse> uses;
  for (size_t i = 0; i < kTimeUses; ++i) {
    if (wall_time.seconds[i] > 0.0) uses.push_back(static_cast<TimeUse>(i));
  }
  std::stable_sort(uses.begin(), uses.end(),
                   [&](TimeUse a, TimeUse b) { return wall_time.seconds_of(a) > wall_time.seconds_of(b); });
  return uses;
}

std::string share_of(const WallTime& wall_time, TimeUse use) {
  return percent_in_words(wall_time.seconds_of(use) / wall_time.total());
}

Bars uses_of_one(const WallTime& wall_time) {
  Bars bars{.name = "where-the-time-went", .title = "Where the time went"};
  for (const TimeUse use : uses_by_size(wall_time)) {
    const std::string size =
        fmt::format("{}, {}", share_of(wall_time, use), duration_in_words(wall_time.seconds_of(use)));
    const std::string label(label_of(use));
    bars.bars.push_back(
        {.label = label, .parts = {{label, std::string(ink_of(use)), wall_time.seconds_of(use), size}}, .value = size});
  }
  return bars;
}

Bars uses_of_several(const std::vector<ReportedRun>& runs) {
  Bars bars{.name = "where-the-time-went", .title = "Where the time went"};
  for (const ReportedRun& run : runs) {
    if (run.wall_time.total() <= 0.0) continue;
    Bar bar{.label = run.name, .value = duration_in_words(run.wall_time.total())};
    for (size_t i = 0; i < kTimeUses; ++i) {
      const auto use = static_cast<TimeUse>(i);
      const double seconds = run.wall_time.seconds[i];
      if (seconds <= 0.0) continue;
      bar.parts.push_back(
          {std::string(label_of(use)), std::string(ink_of(use)), seconds,
           fmt::format("{}: {}, {}", label_of(use), share_of(run.wall_time, use), duration_in_words(seconds))});
    }
    bars.bars.push_back(std::move(bar));
  }
  return bars;
}

// Seconds of each use in each of `columns` equal stretches.
std::vector<UseSeconds> columns_of(const WallTime& wall_time, size_t columns) {
  std::vector<UseSeconds> seconds(columns, UseSeconds{});
  const double width = wall_time.total() / static_cast<double>(columns);
  for (const TimeSlice& slice : wall_time.slices) {
    auto column = static_cast<size_t>(std::max(0.0, (slice.begin - wall_time.begin) / width));
    for (; column < columns; ++column) {
      const double begin = wall_time.begin + width * static_cast<double>(column);
      const double overlap = std::min(slice.end, begin + width) - std::max(slice.begin, begin);
      if (begin >= slice.end) break;
      seconds[column][static_cast<size_t>(slice.use)] += std::max(0.0, overlap);
    }
  }
  return seconds;
}

Plot timeline_of(const WallTime& wall_time) {
  const ClockUnit unit = clock_unit_for(wall_time.total());
  const double width = wall_time.total() / static_cast<double>(kColumns);
  Plot plot{.name = "goodput-timeline",
            .title = "Goodput over time",
            .x_label = unit.label,
            .y_label = "% of each stretch of time",
            .from_zero = true,
            .column_width = width / unit.seconds,
            .wide = true};
  const std::vector<UseSeconds> columns = columns_of(wall_time, kColumns);
  for (size_t i = 0; i < kTimeUses; ++i) {
    if (wall_time.seconds[i] <= 0.0) continue;
    const auto use = static_cast<TimeUse>(i);
    Series series{std::string(label_of(use)), std::string(ink_of(use)), {}, Mark::stacked};
    for (size_t column = 0; column < kColumns; ++column) {
      series.points.push_back({static_cast<double>(column) * width / unit.seconds, 100.0 * columns[column][i] / width});
    }
    plot.series.push_back(std::move(series));
  }
  return plot;
}

// Productive seconds of all seconds so far.
Plot goodput_of_several(const std::vector<ReportedRun>& runs) {
  double longest = 0.0;
  for (const ReportedRun& run : runs) longest = std::max(longest, run.wall_time.total());
  const ClockUnit unit = clock_unit_for(longest);
  Plot plot{.name = "goodput-timeline",
            .title = "Goodput so far",
            .x_label = unit.label,
            .y_label = "% of the wall time",
            .from_zero = true,
            .wide = true};
  for (size_t i = 0; i < runs.size(); ++i) {
    const WallTime& wall_time = runs[i].wall_time;
    if (wall_time.total() <= 0.0) continue;
    Series series{runs[i].name, std::string(ink_of_run(i)), {}};
    const double width = wall_time.total() / static_cast<double>(kColumns);
    double productive = 0.0;
    double passed = 0.0;
    for (const UseSeconds& column : columns_of(wall_time, kColumns)) {
      productive += column[static_cast<size_t>(TimeUse::productive)];
      passed += width;
      series.points.push_back({passed / unit.seconds, 100.0 * productive / passed});
    }
    plot.series.push_back(std::move(series));
  }
  return plot;
}

}  // namespace

ClockUnit clock_unit_for(double seconds) {
  if (seconds < 300.0) return {"seconds since the start", 1.0};
  if (seconds < 3.0 * 3600.0) return {"minutes since the start", 60.0};
  if (seconds < 72.0 * 3600.0) return {"hours since the start", 3600.0};
  return {"days since the start", 86400.0};
}

std::string_view ink_of(TimeUse use) {
  switch (use) {
    case TimeUse::productive:
      return "use-productive";
    case TimeUse::slowdown:
      return "use-slowdown";
    case TimeUse::wasted_steps:
      return "use-wasted";
    case TimeUse::checkpoint_save:
      return "use-save";
    case TimeUse::checkpoint_load:
      return "use-load";
    case TimeUse::validation:
      return "use-validation";
    case TimeUse::detection:
      return "use-detection";
    case TimeUse::decision:
      return "use-decision";
    case TimeUse::teardown:
      return "use-teardown";
    case TimeUse::node_check:
      return "use-check";
    case TimeUse::waiting:
      return "use-waiting";
    case TimeUse::restart:
      return "use-restart";
    case TimeUse::start_up:
      return "use-startup";
    case TimeUse::data_wait:
      return "use-data";
    case TimeUse::planned_stop:
      return "use-planned";
    case TimeUse::unknown:
      return "use-unknown";
  }
  return "use-unknown";
}

std::vector<Picture> time_pictures(const std::vector<ReportedRun>& runs) {
  const bool any =
      std::any_of(runs.begin(), runs.end(), [](const ReportedRun& run) { return run.wall_time.total() > 0.0; });
  if (!any) return {};
  if (runs.size() > 1) return {{kTime, uses_of_several(runs)}, {kTime, goodput_of_several(runs)}};
  return {{kTime, uses_of_one(runs.front().wall_time)}, {kTime, timeline_of(runs.front().wall_time)}};
}

}  // namespace megalith::observe
