#include "observe/watch/watch_numbers.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/metric_names.h"
#include "core/words.h"
#include "observe/draw/sparkline.h"
#include "observe/report/report_run.h"

namespace megalith::observe {

namespace {

constexpr int64_t kSparklineColumn = 36;
constexpr int64_t kShortestSparkline = 8, kLongestSparkline = 60;

// The median of the newest steps.
std::optional<double> recent(const std::vector<Point>& points) {
  const auto count = std::min<std::ptrdiff_t>(std::ssize(points), kWatchRecent);
  const std::vector<double> values = sorted_values({points.end() - count, points.end()});
  return values.empty() ? std::nullopt : std::optional(quantile(values, 0.5));
}

class Numbers {
 public:
  Numbers(const RunHistory& history, const WatchView& view) : history_(history), view_(view), lines_(1) {}

  std::vector<StyledLine> draw() && {
    add_speed();
    add_memory();
    add_slowest();
    add_checkpoint();
    if (history_.last_time > 0.0) {
      const double silence = std::round(std::max(0.0, view_.now - history_.last_time));
      const bool over = history_.end || history_.complete();
      new_line(over ? "ended" : "last line").add(duration_in_words(silence) + " ago", style::kDim);
    }
    return std::move(lines_);
  }

 private:
  StyledLine& new_line(const char* label) { return lines_.emplace_back().add(label).pad_to(kWatchLabel); }

  void add_number(const char* label, const std::string& value, const std::vector<Point>& points) {
    StyledLine& line = new_line(label).add(value, style::kBold);
    const int64_t room = std::min<int64_t>(view_.width - kSparklineColumn, kLongestSparkline);
    if (room < kShortestSparkline || points.size() < 2) return;
    line.pad_to(kSparklineColumn).add(sparkline(means_by_column(points, static_cast<size_t>(room))), style::kBlue);
  }

  void add_speed() {
    const std::vector<Point> speed = throughput_of(history_);
    if (const auto value = recent(speed)) add_number("tokens/s", with_commas(*value), speed);
    const std::vector<Point>& times = history_.curve(metric::kStepTime).points();
    if (const auto value = recent(times)) add_number("step time", duration_in_words(*value), times);
    const std::vector<Point>& mfu = history_.curve(metric::kMfu).points();
    if (const auto value = recent(mfu)) add_number("MFU", fmt::format("{:.1f}%", 100.0 * *value), mfu);
    const std::vector<Point>& tflops = history_.curve(metric::kTflops).points();
    if (const auto value = recent(tflops); value && mfu.empty())
      add_number("TFLOPS", fmt::format("{:.3g}", *value), tflops);
    const std::vector<Point>& norms = history_.curve(metric::kGradientNorm).points();
    if (const auto value = recent(norms)) add_number("grad norm", fmt::format("{:.3g}", *value), norms);
  }

  void add_memory() {
    if (history_.memory.empty()) return;
    std::vector<std::pair<std::string, double>> arenas(history_.memory.begin(), history_.memory.end());
    std::erase_if(arenas, [](const auto& arena) { return arena.second <= 0.0; });
    std::stable_sort(arenas.begin(), arenas.end(), [](const auto& a, const auto& b) { return a.second > b.second; });
    double sum = 0.0;
    for (const auto& [arena, bytes] : arenas) sum += bytes;
    StyledLine& line = new_line("memory").add(bytes_in_words(sum), style::kBold);
    for (size_t i = 0; i < arenas.size(); ++i) {
      const std::string words =
          fmt::format("{}{} {}", i == 0 ? "  " : ", ", arenas[i].first, bytes_in_words(arenas[i].second));
      const bool is_last = i + 1 == arenas.size();
      const std::string more = fmt::format(" and {} more", arenas.size() - i);
      if (line.columns() + columns_of(words) + (is_last ? 0 : columns_of(more)) > view_.width) {
        if (i > 0) line.add(more, style::kDim);
        return;
      }
      line.add(words, style::kDim);
    }
  }

  void add_slowest() {
    const auto& counts = history_.slowest_ranks;
    if (counts.empty()) return;
    const auto most = std::max_element(counts.begin(), counts.end(),
                                       [](const auto& a, const auto& b) { return a.second < b.second; });
    int64_t all = 0;
    for (const auto& [rank, count] : counts) all += count;
    const double percentage = 100.0 * static_cast<double>(most->second) / static_cast<double>(all);
    StyledLine& line = new_line("slowest").add(fmt::format("rank {}", most->first), style::kBold);
    line.add(fmt::format("  in {:.0f}% of steps", percentage), style::kDim);
    if (const auto spread = recent(history_.curve(metric::kRankSpread).points()))
      line.add(fmt::format(", spread {}", duration_in_words(*spread)), style::kDim);
  }

  void add_checkpoint() {
    if (!history_.saved_steps) return;
    const auto steps = static_cast<double>(*history_.saved_steps);
    StyledLine& line = new_line("checkpoint").add("step " + with_commas(steps), style::kBold);
    const int64_t since = history_.last_step.value_or(-1) + 1 - *history_.saved_steps;
    if (since > 0)
      line.add(fmt::format("  {} ago", since == 1 ? "1 step" : with_commas(static_cast<double>(since)) + " steps"),
               style::kDim);
  }

  const RunHistory& history_;
  const WatchView& view_;
  std::vector<StyledLine> lines_;  // the first stays empty
};

}  // namespace

std::vector<StyledLine> watch_numbers(const RunHistory& history, const WatchView& view) {
  return Numbers(history, view).draw();
}

}  // namespace megalith::observe
