#include "observe/report/report_pictures.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <optional>
#include <utility>

#include "core/metric_names.h"
#include "observe/draw/palette.h"
#include "observe/report/report_shares.h"
#include "observe/report/report_time.h"

namespace megalith::observe {

namespace {

constexpr const char* kLearning = "Learning";
constexpr const char* kSpeed = "Speed";
constexpr const char* kMemory = "Memory";

// How far a run is: in steps, or in millions of tokens where runs take different numbers of tokens in a step.
struct ProgressAxis {
  std::string label = "step";
  bool in_tokens = false;

  explicit ProgressAxis(const std::vector<ReportedRun>& runs) : in_tokens(counts_tokens(runs)) {
    if (in_tokens) label = "million tokens";
  }

  std::vector<Point> along(const ReportedRun& run, std::vector<Point> points) const {
    if (!in_tokens) return points;
    const double each = *run.history.tokens_per_step() / 1e6;
    for (Point& point : points) point.x = (point.x + 1.0) * each;
    return points;
  }
};

std::vector<Moment> restarts_of(const RunHistory& history) {
  std::vector<Moment> moments;
  for (size_t i = 1; i < history.starts.size(); ++i) {
    moments.push_back({.x = static_cast<double>(history.starts[i].step), .label = ""});
  }
  // More than a few say nothing by themselves.
  constexpr size_t kShown = 12;
  if (moments.size() > kShown) return {};
  if (!moments.empty()) moments.front().label = moments.size() > 1 ? "restarts" : "restart";
  return moments;
}

using PointsOf = std::function<std::vector<Point>(const RunHistory&)>;

// The points of a logged number, `unit` of which make one.
PointsOf logged(const char* number, double unit = 1.0) {
  return [number, unit](const RunHistory& history) {
    std::vector<Point> points = history.curve(number).points();
    for (Point& point : points) point.y *= unit;
    return points;
  };
}

class Gallery {
 public:
  explicit Gallery(const std::vector<ReportedRun>& runs) : runs_(runs), progress_(runs) {}

  // A curve of each run, smooth where it is noisy; of one run also every step, faintly.
  void add_curve(const char* section, Plot plot, const std::string& ink, const PointsOf& points_of, bool noisy = true) {
    plot.x_label = progress_.label;
    for (size_t i = 0; i < runs_.size(); ++i) {
      const std::vector<Point> points = progress_.along(runs_[i], points_of(runs_[i].history));
      const bool says_something = std::any_of(points.begin(), points.end(), [](const Point& p) { return p.y != 0.0; });
      if (!says_something) continue;
      const bool alone = runs_.size() == 1;
      const size_t window = noisy ? smoothing_window(points.size()) : 1;
      const std::string label = alone ? fmt::format("mean of {} steps", window) : runs_[i].name;
      const std::string colour = alone ? ink : std::string(ink_of_run(i));
      if (window > 1 && alone) plot.series.push_back({"each step", colour, points, Mark::faint});
      if (window > 1) {
        plot.series.push_back({label, colour, smooth(points, window), Mark::line});
      } else {
        plot.series.push_back({alone ? plot.title : label, colour, points, noisy ? Mark::dots : Mark::line});
      }
    }
    if (runs_.size() == 1) plot.moments = restarts_of(runs_.front().history);
    if (!plot.series.empty()) pictures_.push_back({section, std::move(plot)});
  }

  void add_loss() {
    add_curve(kLearning, {.name = "loss", .title = "Loss", .y_label = "training", .offers_log = true, .wide = true},
              "train", logged(metric::kTrainLoss));
    if (runs_.size() > 1) return add_validation();
    const std::vector<Point>& points = runs_.front().history.validation_loss.points();
    if (pictures_.empty()) {
      if (!points.empty()) add_validation();
      return;
    }
    auto& plot = std::get<Plot>(pictures_.back().drawn);
    plot.y_label = points.empty() ? "training" : "training and validation";
    if (!points.empty()) plot.series.push_back({"validation", "validation", points, Mark::dots});
  }

  void add_validation() {
    Plot plot{.name = "validation-loss", .title = "Validation loss", .x_label = progress_.label, .offers_log = true};
    for (size_t i = 0; i < runs_.size(); ++i) {
      const std::vector<Point> points = progress_.along(runs_[i], runs_[i].history.validation_loss.points());
      if (!points.empty()) plot.series.push_back({runs_[i].name, std::string(ink_of_run(i)), points, Mark::dots});
    }
    if (!plot.series.empty()) pictures_.push_back({kLearning, std::move(plot)});
  }

  // What a faster step buys: the same curves by the clock.
  void add_loss_by_time() {
    if (runs_.size() < 2) return;
    double longest = 0.0;
    for (const ReportedRun& run : runs_) longest = std::max(longest, run.history.last_time - run.history.first_time);
    const ClockUnit unit = clock_unit_for(longest);
    Plot plot{.name = "loss-by-time", .title = "Loss by time", .x_label = unit.label, .offers_log = true};
    for (size_t i = 0; i < runs_.size(); ++i) {
      const RunHistory& history = runs_[i].history;
      std::vector<Point> points;
      for (const Point& loss : history.curve(metric::kTrainLoss).points()) {
        const auto time = history.time_of_step.at(static_cast<int64_t>(loss.x));
        if (time) points.push_back({(*time - history.first_time) / unit.seconds, loss.y});
      }
      std::stable_sort(points.begin(), points.end(), [](const Point& a, const Point& b) { return a.x < b.x; });
      if (points.empty()) continue;
      plot.series.push_back(
          {runs_[i].name, std::string(ink_of_run(i)), smooth(points, smoothing_window(points.size()))});
    }
    if (!plot.series.empty()) pictures_.push_back({kLearning, std::move(plot)});
  }

  void add_all() {
    add_loss();
    add_loss_by_time();
    add_curve(kLearning, {.name = "gradient-norm", .title = "Gradient norm", .offers_log = true}, "validation",
              logged(metric::kGradientNorm));
    add_curve(kLearning, {.name = "learning-rate", .title = "Learning rate", .shows_all = true}, "speed",
              logged(metric::kLearningRate), false);
    add_curve(kSpeed, {.name = "throughput", .title = "Throughput", .y_label = "tokens/s", .from_zero = true}, "speed",
              throughput_of);
    add_curve(kSpeed,
              {.name = "step-time", .title = "Step time", .y_label = "seconds", .from_zero = true, .offers_log = true},
              "time", logged(metric::kStepTime));
    add(kSpeed, step_time_distribution(runs_));
    add_curve(kSpeed, {.name = "mfu", .title = "MFU", .y_label = "% of the peak", .from_zero = true}, "train",
              logged(metric::kMfu, 100.0));
    add_curve(kSpeed, {.name = "floor", .title = "Share of the floor", .y_label = "%", .from_zero = true}, "train",
              logged(metric::kFloorFraction, 100.0));
    add_curve(kSpeed,
              {.name = "data-wait", .title = "Waiting for data", .y_label = "seconds of a step", .from_zero = true},
              "validation", logged(metric::kDataWait));
    add_curve(
        kSpeed,
        {.name = "communication", .title = "Exposed communication", .y_label = "seconds of a step", .from_zero = true},
        "train", logged(metric::kCommunicationExposed));
    add_curve(kSpeed,
              {.name = "checkpoint-stall",
               .title = "Standing still for checkpoints",
               .y_label = "seconds of a step",
               .from_zero = true},
              "validation", logged(metric::kCheckpointStall));
    add_curve(
        kSpeed,
        {.name = "rank-spread", .title = "Spread of the ranks", .y_label = "seconds of a step", .from_zero = true},
        "alarm", logged(metric::kRankSpread));
    add(kSpeed, slowest_ranks(runs_));
    for (Picture& picture : time_pictures(runs_)) pictures_.push_back(std::move(picture));
    add(kMemory, memory_by_arena(runs_));
  }

  template <class Drawn>
  void add(const char* section, std::optional<Drawn> drawn) {
    if (drawn) pictures_.push_back({section, std::move(*drawn)});
  }

  std::vector<Picture> take() { return std::move(pictures_); }

 private:
  const std::vector<ReportedRun>& runs_;
  ProgressAxis progress_;
  std::vector<Picture> pictures_;
};

}  // namespace

std::vector<Picture> pictures_of(const std::vector<ReportedRun>& runs) {
  Gallery gallery(runs);
  gallery.add_all();
  return gallery.take();
}

}  // namespace megalith::observe
