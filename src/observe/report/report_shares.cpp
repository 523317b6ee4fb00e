#include "observe/report/report_shares.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/metric_names.h"
#include "core/words.h"
#include "observe/draw/histogram.h"
#include "observe/draw/palette.h"

namespace megalith::observe {

namespace {

constexpr size_t kBins = 60;
constexpr size_t kRanksShown = 8;

// Where nearly all step times lie; the slowest few would squeeze the rest.
Scale range_of(const std::vector<std::vector<double>>& sorted) {
  Scale range;
  for (const std::vector<double>& values : sorted) {
    if (values.empty()) continue;
    range.take(quantile(values, 0.002));
    range.take(quantile(values, 0.99));
  }
  range.make_usable();
  const double size = range.high - range.low;
  return {.low = std::max(0.0, range.low - 0.05 * size), .high = range.high + 0.1 * size};
}

template <class Key, class Number>
std::vector<std::pair<Key, Number>> largest_first(const std::map<Key, Number>& numbers) {
  std::vector<std::pair<Key, Number>> sorted(numbers.begin(), numbers.end());
  std::stable_sort(sorted.begin(), sorted.end(), [](const auto& a, const auto& b) { return a.second > b.second; });
  return sorted;
}

}  // namespace

std::optional<Plot> step_time_distribution(const std::vector<ReportedRun>& runs) {
  std::vector<std::vector<double>> values;
  values.reserve(runs.size());
  for (const ReportedRun& run : runs) values.push_back(sorted_values(run.history.curve(metric::kStepTime).points()));
  if (std::all_of(values.begin(), values.end(), [](const auto& of_run) { return of_run.empty(); })) return std::nullopt;
  const Scale range = range_of(values);
  Plot plot{.name = "step-time-distribution",
            .title = "Step times",
            .x_label = "seconds",
            .y_label = "% of steps",
            .from_zero = true,
            .column_width = (range.high - range.low) / static_cast<double>(kBins)};
  const bool alone = runs.size() == 1;
  for (size_t i = 0; i < runs.size(); ++i) {
    if (values[i].empty()) continue;
    const Histogram histogram = histogram_of(values[i], range.low, range.high, kBins);
    plot.series.push_back({alone ? "% of steps" : runs[i].name, std::string(alone ? "time" : ink_of_run(i)),
                           histogram.percentages(), Mark::columns});
    if (!alone) continue;
    plot.moments = {{quantile(values[i], 0.5), "median"}, {quantile(values[i], 0.99), "99%"}};
    const auto slower = static_cast<double>(histogram.above);
    if (slower > 0) plot.y_label += fmt::format(", {} slower", with_commas(slower));
  }
  return plot;
}

std::optional<Bars> memory_by_arena(const std::vector<ReportedRun>& runs) {
  Bars bars{.name = "memory", .title = "Memory by arena, of one rank"};
  const bool alone = runs.size() == 1;
  for (size_t i = 0; i < runs.size(); ++i) {
    for (const auto& [arena, bytes] : largest_first(runs[i].history.memory)) {
      if (bytes <= 0.0) continue;
      const std::string size = bytes_in_words(bytes);
      bars.bars.push_back({.label = alone ? arena : fmt::format("{}, {}", arena, runs[i].name),
                           .parts = {{arena, std::string(alone ? "memory" : ink_of_run(i)), bytes, size}},
                           .value = size});
    }
  }
  if (bars.bars.empty()) return std::nullopt;
  if (!alone) {
    std::stable_sort(bars.bars.begin(), bars.bars.end(),
                     [](const Bar& a, const Bar& b) { return a.parts.front().label < b.parts.front().label; });
  }
  return bars;
}

std::optional<Bars> slowest_ranks(const std::vector<ReportedRun>& runs) {
  if (runs.size() > 1 || runs.front().history.slowest_ranks.empty()) return std::nullopt;
  auto ranks = largest_first(runs.front().history.slowest_ranks);
  int64_t all = 0;
  for (const auto& [rank, count] : ranks) all += count;
  ranks.resize(std::min(ranks.size(), kRanksShown));
  Bars bars{.name = "slowest-ranks", .title = "Who was the slowest"};
  for (const auto& [rank, count] : ranks) {
    const double percentage = 100.0 * static_cast<double>(count) / static_cast<double>(all);
    const std::string share = fmt::format("{:.3g}% of steps", percentage);
    bars.bars.push_back({.label = fmt::format("rank {}", rank),
                         .parts = {{"steps", "alarm", static_cast<double>(count), share}},
                         .value = share});
  }
  return bars;
}

}  // namespace megalith::observe
