#include "observe/report/report_facts.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/metric_names.h"
#include "core/words.h"
#include "observe/draw/scale.h"
#include "observe/report/html.h"

namespace megalith::observe {

namespace {

const Point* lowest(const std::vector<Point>& points) {
  const auto found = std::min_element(points.begin(), points.end(), [](const Point& a, const Point& b) {
    return std::isfinite(a.y) && (!std::isfinite(b.y) || a.y < b.y);
  });
  return found == points.end() ? nullptr : &*found;
}

void add_losses(FactCards& cards, const RunHistory& history) {
  if (const auto loss = history.loss()) {
    const std::vector<Point>& points = history.curve(metric::kTrainLoss).points();
    const size_t window = smoothing_window(points.size());
    const std::string mean = fmt::format("mean of the last {}: {:.4f}", window, smooth(points, 2 * window).back().y);
    cards.add("Training loss", fmt::format("{:.4f}", *loss), window > 1 ? mean : "");
  }
  if (const auto loss = history.validation_loss.last()) {
    const Point* best = lowest(history.validation_loss.points());
    cards.add("Validation loss", fmt::format("{:.4f}", *loss),
              fmt::format("perplexity {:.4g}{}", std::exp(*loss),
                          best->y < *loss ? fmt::format("; best {:.4f} at step {:.0f}", best->y, best->x) : ""));
  }
}

void add_progress(FactCards& cards, const RunHistory& history) {
  if (!history.last_step) return;
  const auto done = static_cast<double>(*history.last_step + 1);
  const auto wanted = history.max_steps();
  std::string detail = wanted ? fmt::format("of {}", with_commas(static_cast<double>(*wanted))) : "";
  if (const auto tokens = history.tokens_per_step())
    detail += fmt::format("{}{} tokens", detail.empty() ? "" : "; ", short_number(*tokens * done));
  cards.add("Steps", with_commas(done), detail);
}

void add_speed(FactCards& cards, const RunHistory& history) {
  const std::vector<double> speeds = sorted_values(throughput_of(history));
  if (!speeds.empty()) {
    const auto of_rank = median(history.curve(metric::kTflopsPerRank));
    const auto tflops = of_rank ? of_rank : median(history.curve(metric::kTflops));
    cards.add("Tokens/s", with_commas(quantile(speeds, 0.5)),
              tflops ? fmt::format("{:.3g} TFLOPS{}; medians", *tflops, of_rank ? " per rank" : "") : "median");
  }
  if (const auto mfu = median(history.curve(metric::kMfu))) {
    const auto floor = median(history.curve(metric::kFloorFraction));
    cards.add("MFU", fmt::format("{:.1f}%", 100.0 * *mfu),
              floor ? fmt::format("{:.1f}% of the floor", 100.0 * *floor) : "median");
  }
  const std::vector<double> times = sorted_values(history.curve(metric::kStepTime).points());
  if (!times.empty()) {
    cards.add(
        "Step time", duration_in_words(quantile(times, 0.5)),
        fmt::format("99%: {}; slowest {}", duration_in_words(quantile(times, 0.99)), duration_in_words(times.back())));
  }
}

void add_time(FactCards& cards, const ReportedRun& run) {
  const RunHistory& history = run.history;
  if (run.wall_time.total() > 0.0) {
    const auto incidents = run.wall_time.incidents.size();
    cards.add("Goodput", fmt::format("{:.1f}%", 100.0 * run.wall_time.productive_fraction()),
              incidents == 0 ? "no incident" : fmt::format("{} incident{}", incidents, incidents == 1 ? "" : "s"));
  }
  if (history.last_time > history.first_time) {
    cards.add("Wall time", duration_in_words(history.last_time - history.first_time),
              history.starts.size() > 1
                  ? fmt::format("{} restart{}", history.starts.size() - 1, history.starts.size() == 2 ? "" : "s")
                  : "");
  }
  if (!history.memory.empty()) {
    double sum = 0.0;
    for (const auto& [arena, bytes] : history.memory) sum += bytes;
    cards.add("Memory", bytes_in_words(sum), fmt::format("of one rank, in {} arenas", history.memory.size()));
  }
}

}  // namespace

std::string headline_cards(const ReportedRun& run) {
  FactCards cards;
  add_losses(cards, run.history);
  add_progress(cards, run.history);
  add_speed(cards, run.history);
  add_time(cards, run);
  return cards.to_html();
}

}  // namespace megalith::observe
