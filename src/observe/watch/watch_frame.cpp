#include "observe/watch/watch_frame.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/metric_names.h"
#include "core/words.h"
#include "observe/draw/scale.h"
#include "observe/draw/sparkline.h"
#include "observe/draw/styled_line.h"
#include "observe/report/report_run.h"
#include "observe/sinks/progress_line.h"
#include "observe/watch/watch_numbers.h"

namespace megalith::observe {

namespace {

constexpr int64_t kShortestBar = 8;

double stall_limit(const RunHistory& history, const WatchView& view) {
  constexpr double kShortest = 120.0, kSteps = 20.0;
  if (view.stall_seconds > 0.0) return view.stall_seconds;
  return std::max(kShortest, kSteps * median(history.curve(metric::kStepTime)).value_or(0.0));
}

// Of the ends of an axis: three digits, and as many more as tell them apart.
std::pair<std::string, std::string> distinct_labels(double high, double low) {
  constexpr int kFew = 3, kMany = 5;
  std::pair<std::string, std::string> labels;
  for (int digits = kFew; digits <= kMany && labels.first == labels.second; ++digits) {
    labels = {fmt::format("{:.{}g}", high, digits), fmt::format("{:.{}g}", low, digits)};
  }
  return labels;
}

class Frame {
 public:
  Frame(const std::string& name, const RunHistory& history, const WatchView& view)
      : name_(name), history_(history), view_(view), state_(watch_state(history, view)) {}

  std::vector<std::string> draw() {
    add_heading();
    add_progress();
    add_losses();
    const std::vector<StyledLine> numbers = watch_numbers(history_, view_);
    const int64_t room = view_.height - static_cast<int64_t>(lines_.size() + numbers.size()) - 2;
    add_loss_curve(std::min<int64_t>(room, 14));
    lines_.insert(lines_.end(), numbers.begin(), numbers.end());
    // Where rows are scarce, none is empty.
    if (std::ssize(lines_) > view_.height) std::erase_if(lines_, [](const StyledLine& l) { return l.columns() == 0; });
    std::vector<std::string> text;
    for (const StyledLine& line : lines_) {
      if (static_cast<int>(text.size()) < view_.height) text.push_back(line.to_string(view_.width, view_.colour));
    }
    return text;
  }

 private:
  StyledLine& new_line() { return lines_.emplace_back(); }

  void add_heading() {
    StyledLine& line = new_line().add(name_, style::kBold).add("  ");
    const double silence = view_.now - history_.last_time;
    switch (state_) {
      case WatchState::starting:
        line.add("no step yet", style::kYellow);
        break;
      case WatchState::running:
        line.add("running", style::kGreen);
        break;
      case WatchState::stalled:
        line.add(fmt::format("stalled: no line for {}", duration_in_words(silence)), style::kRed);
        break;
      case WatchState::ended_early:
        line.add(fmt::format("ended early: {}", history_.end->reason.empty() ? "no reason told" : history_.end->reason),
                 style::kRed);
        break;
      case WatchState::complete:
        line.add("complete", style::kGreen);
        break;
    }
    std::string where = history_.nodes.size() == 1 ? "on " + history_.nodes.front() : "";
    if (history_.starts.size() > 1) {
      where += fmt::format("{}{} restart{}", where.empty() ? "" : ", ", history_.starts.size() - 1,
                           history_.starts.size() == 2 ? "" : "s");
    }
    const int64_t column = view_.width - columns_of(where);
    if (column > line.columns() + 2) line.pad_to(column).add(where, style::kDim);
    if (history_.made_up_tokens()) new_line().add("made-up tokens: give model.data.data_prefix", style::kYellow);
  }

  void add_progress() {
    if (!history_.last_step) return;
    const auto done = static_cast<double>(*history_.last_step + 1);
    const auto wanted = history_.max_steps();
    if (!wanted) {
      new_line().add(fmt::format("step {}", with_commas(done)), style::kBold);
      return;
    }
    const double share = done / static_cast<double>(*wanted);
    std::string words = fmt::format(" {:5.1f}%  step {} of {}", 100.0 * std::min(1.0, share), with_commas(done),
                                    with_commas(static_cast<double>(*wanted)));
    const auto left = seconds_left(history_);
    if (left && (state_ == WatchState::running || state_ == WatchState::stalled))
      words += fmt::format(", {} left", duration_in_words(*left));
    const int64_t cells = view_.width - columns_of(words);
    StyledLine& line = new_line();
    if (cells >= kShortestBar) line.add(progress_bar(share, cells, "·"), style::kGreen);
    line.add(words);
  }

  void add_losses() {
    const auto loss = history_.loss();
    if (!loss) return;
    new_line();
    const std::vector<Point>& points = history_.curve(metric::kTrainLoss).points();
    const size_t window = smoothing_window(points.size());
    StyledLine& line = new_line().add("loss").pad_to(kWatchLabel).add(fmt::format("{:.4f}", *loss), style::kBold);
    if (window > 1) line.add(fmt::format("  mean {:.4f}", smooth(points, 2 * window).back().y), style::kDim);
    if (const auto validation = history_.validation_loss.last())
      line.add("  validation ").add(fmt::format("{:.4f}", *validation), style::kBold);
  }

  void add_loss_curve(int64_t rows) {
    const std::vector<Point>& points = history_.curve(metric::kTrainLoss).points();
    const int64_t width = view_.width - 9;
    if (points.size() < 2 || width < 10 || rows < 1) return;
    const std::vector<double> means = means_by_column(points, static_cast<size_t>(width) * 2);
    std::vector<double> sorted;
    std::copy_if(means.begin(), means.end(), std::back_inserter(sorted),
                 [](double value) { return std::isfinite(value); });
    if (sorted.empty()) return;
    std::sort(sorted.begin(), sorted.end());
    // The first few steps of a long run would leave no room for the others.
    const double high = quantile(sorted, sorted.size() > 50 ? 0.98 : 1.0);
    if (rows == 1) {
      new_line()
          .pad_to(kWatchLabel)
          .add(sparkline(means_by_column(points, static_cast<size_t>(width - 4))), style::kBlue);
      return;
    }
    const std::vector<std::string> curve = dotted_curve(means, static_cast<size_t>(rows), sorted.front(), high);
    const auto [top, bottom] = distinct_labels(high, sorted.front());
    for (size_t i = 0; i < curve.size(); ++i) {
      const std::string label = i == 0 ? top : (i + 1 == curve.size() ? bottom : "");
      new_line().add(fmt::format("{:>7} ", label), style::kDim).add(curve[i], style::kBlue);
    }
  }

  const std::string& name_;
  const RunHistory& history_;
  const WatchView& view_;
  WatchState state_;
  std::vector<StyledLine> lines_;
};

}  // namespace

WatchState watch_state(const RunHistory& history, const WatchView& view) {
  if (history.complete()) return WatchState::complete;
  if (history.end) return WatchState::ended_early;
  if (history.last_time > 0.0 && view.now - history.last_time > stall_limit(history, view)) return WatchState::stalled;
  return history.last_step ? WatchState::running : WatchState::starting;
}

std::optional<double> seconds_left(const RunHistory& history) {
  const auto wanted = history.max_steps();
  if (!wanted || !history.last_step) return std::nullopt;
  const int64_t started = history.starts.empty() ? 0 : history.starts.back().step;
  const int64_t first = std::max<int64_t>(started, *history.last_step - static_cast<int64_t>(kWatchRecent));
  const auto begin = history.time_of_step.at(first);
  const auto end = history.time_of_step.at(*history.last_step);
  if (!begin || !end || first >= *history.last_step || *end < *begin) return std::nullopt;
  return (*end - *begin) / static_cast<double>(*history.last_step - first) *
         static_cast<double>(*wanted - 1 - *history.last_step);
}

std::vector<std::string> watch_frame(const std::string& name, const RunHistory& history, const WatchView& view) {
  return Frame(name, history, view).draw();
}

}  // namespace megalith::observe
