#include "observe/report/report_compare.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "core/metric_names.h"
#include "core/words.h"
#include "observe/draw/palette.h"
#include "observe/draw/scale.h"
#include "observe/report/html.h"

namespace megalith::observe {

namespace {

// A row of the comparison: each run's number as text, and how far it is from the first run's.
struct Row {
  std::string name;
  std::vector<std::optional<double>> values;
  std::string (*show)(double);
};

std::string four_digits(double value) {
  return fmt::format("{:.4f}", value);
}
std::string percent(double value) {
  return fmt::format("{:.1f}%", 100.0 * value);
}

std::optional<double> median_of(const std::vector<Point>& points) {
  const std::vector<double> values = sorted_values(points);
  return values.empty() ? std::nullopt : std::optional(quantile(values, 0.5));
}

// How far every run has come: in steps, or in tokens where a step is not the same of each.
struct CommonProgress {
  double reached = 0.0;
  bool in_tokens = false;

  std::string name() const {
    return in_tokens ? fmt::format("Smooth loss at {} tokens", short_number(reached))
                     : fmt::format("Smooth loss at step {}", with_commas(reached - 1.0));
  }
  // The step of a run that came nearest to it.
  int64_t step_of(const RunHistory& history) const {
    const double steps = in_tokens ? std::ceil(reached / *history.tokens_per_step()) : reached;
    return static_cast<int64_t>(steps) - 1;
  }
};

std::optional<CommonProgress> common_progress(const std::vector<ReportedRun>& runs) {
  CommonProgress common{.reached = std::numeric_limits<double>::infinity(), .in_tokens = counts_tokens(runs)};
  for (const ReportedRun& run : runs) {
    if (!run.history.last_step) return std::nullopt;
    const double of_step = common.in_tokens ? *run.history.tokens_per_step() : 1.0;
    common.reached = std::min(common.reached, static_cast<double>(*run.history.last_step + 1) * of_step);
  }
  return common;
}

std::optional<double> smooth_loss_at(const RunHistory& history, int64_t step) {
  const std::vector<Point>& points = history.curve(metric::kTrainLoss).points();
  const std::vector<Point> means = smooth(points, smoothing_window(points.size()));
  const auto found =
      std::find_if(means.begin(), means.end(), [&](const Point& p) { return p.x >= static_cast<double>(step); });
  return found == means.end() ? std::nullopt : std::optional(found->y);
}

template <class Number>
void add_row(std::vector<Row>& rows, const std::vector<ReportedRun>& runs, std::string name,
             std::string (*show)(double), Number number) {
  Row row{.name = std::move(name), .values = {}, .show = show};
  for (const ReportedRun& run : runs) row.values.push_back(number(run));
  if (std::any_of(row.values.begin(), row.values.end(), [](const auto& value) { return value.has_value(); }))
    rows.push_back(std::move(row));
}

std::vector<Row> rows_of(const std::vector<ReportedRun>& runs) {
  using Maybe = std::optional<double>;
  std::vector<Row> rows;
  add_row(rows, runs, "Steps", with_commas, [](const ReportedRun& run) {
    return run.history.last_step ? Maybe(static_cast<double>(*run.history.last_step + 1)) : Maybe();
  });
  if (counts_tokens(runs)) {
    add_row(rows, runs, "Tokens", short_number, [](const ReportedRun& run) {
      return run.history.last_step
                 ? Maybe(static_cast<double>(*run.history.last_step + 1) * *run.history.tokens_per_step())
                 : Maybe();
    });
  }
  add_row(rows, runs, "Training loss", four_digits, [](const ReportedRun& run) { return run.history.loss(); });
  if (const auto common = common_progress(runs)) {
    add_row(rows, runs, common->name(), four_digits,
            [&](const ReportedRun& run) { return smooth_loss_at(run.history, common->step_of(run.history)); });
  }
  add_row(rows, runs, "Validation loss", four_digits,
          [](const ReportedRun& run) { return run.history.validation_loss.last(); });
  add_row(rows, runs, "Tokens/s, median", with_commas,
          [](const ReportedRun& run) { return median_of(throughput_of(run.history)); });
  add_row(rows, runs, "TFLOPS, median", short_number,
          [](const ReportedRun& run) { return median(run.history.curve(metric::kTflops)); });
  add_row(rows, runs, "MFU, median", percent,
          [](const ReportedRun& run) { return median(run.history.curve(metric::kMfu)); });
  add_row(rows, runs, "Step time, median", duration_in_words,
          [](const ReportedRun& run) { return median(run.history.curve(metric::kStepTime)); });
  add_row(rows, runs, "Goodput", percent, [](const ReportedRun& run) {
    return run.wall_time.total() > 0.0 ? Maybe(run.wall_time.productive_fraction()) : Maybe();
  });
  add_row(rows, runs, "Wall time", duration_in_words, [](const ReportedRun& run) {
    const double seconds = run.history.last_time - run.history.first_time;
    return seconds > 0.0 ? Maybe(seconds) : Maybe();
  });
  return rows;
}

std::string run_headings(const std::vector<ReportedRun>& runs) {
  std::string html;
  for (size_t i = 0; i < runs.size(); ++i) {
    html +=
        fmt::format(R"-(<th><i style="background:var(--{})"></i>{}</th>)-", ink_of_run(i), escape_html(runs[i].name));
  }
  return html;
}

std::string change_in_words(double percent_more) {
  return std::abs(percent_more) < 10.0 ? fmt::format(" <small>{:+.1f}%</small>", percent_more)
                                       : fmt::format(" <small>{:+.0f}%</small>", percent_more);
}

std::string cell(const Row& row, size_t column) {
  const auto& value = row.values[column];
  if (!value) return "<td>-</td>";
  const auto& first = row.values.front();
  std::string change;
  if (column > 0 && first && *first != 0.0 && std::isfinite(*value) && *value != *first)
    change = change_in_words(100.0 * (*value / *first - 1.0));
  return fmt::format("<td>{}{}</td>", escape_html(row.show(*value)), change);
}

}  // namespace

std::string comparison_table(const std::vector<ReportedRun>& runs) {
  std::string html = "<section class=\"card\"><h2>Side by side</h2><div class=\"scroll\"><table><tr><th></th>" +
                     run_headings(runs) + "</tr>\n";
  for (const Row& row : rows_of(runs)) {
    html += fmt::format("<tr><td>{}</td>", escape_html(row.name));
    for (size_t i = 0; i < runs.size(); ++i) html += cell(row, i);
    html += "</tr>\n";
  }
  return html + "</table></div></section>\n";
}

std::string different_settings(const std::vector<ReportedRun>& runs) {
  std::set<std::string> keys;
  for (const ReportedRun& run : runs) {
    for (const auto& [key, value] : run.history.settings) keys.insert(key);
  }
  std::string rows;
  for (const std::string& key : keys) {
    std::vector<std::string> values;
    for (const ReportedRun& run : runs) {
      const auto found = run.history.settings.find(key);
      values.push_back(found == run.history.settings.end() ? "-" : found->second);
    }
    if (std::set<std::string>(values.begin(), values.end()).size() < 2) continue;
    rows += fmt::format("<tr><td>{}</td>", escape_html(key));
    for (const std::string& value : values) rows += fmt::format("<td>{}</td>", escape_html(value));
    rows += "</tr>\n";
  }
  if (rows.empty()) return "";
  return "<section class=\"card\"><h2>Settings that differ</h2><div class=\"scroll\"><table><tr><th></th>" +
         run_headings(runs) + "</tr>\n" + rows + "</table></div></section>\n";
}

}  // namespace megalith::observe
