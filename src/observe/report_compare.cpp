#include "observe/report_compare.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "observe/html.h"
#include "observe/palette.h"
#include "observe/report_words.h"
#include "observe/scale.h"

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

// The last step that every run has done.
std::optional<int64_t> common_step(const std::vector<ReportedRun>& runs) {
  std::optional<int64_t> step = runs.front().history.last_step;
  for (const ReportedRun& run : runs) {
    if (!run.history.last_step || !step) return std::nullopt;
    step = std::min(*step, *run.history.last_step);
  }
  return step;
}

std::optional<double> smooth_loss_at(const RunHistory& history, int64_t step) {
  const std::vector<Point>& points = history.curve("reduced_train_loss").points();
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
  add_row(rows, runs, "Steps", with_thousands, [](const ReportedRun& run) {
    return run.history.last_step ? Maybe(static_cast<double>(*run.history.last_step + 1)) : Maybe();
  });
  add_row(rows, runs, "Training loss", four_digits, [](const ReportedRun& run) { return run.history.loss(); });
  if (const auto step = common_step(runs)) {
    add_row(rows, runs, fmt::format("Smooth loss at step {}", with_thousands(static_cast<double>(*step))), four_digits,
            [&](const ReportedRun& run) { return smooth_loss_at(run.history, *step); });
  }
  add_row(rows, runs, "Validation loss", four_digits,
          [](const ReportedRun& run) { return run.history.validation_loss.last(); });
  add_row(rows, runs, "Tokens/s, median", with_thousands,
          [](const ReportedRun& run) { return median_of(throughput_of(run.history)); });
  add_row(rows, runs, "TFLOPS, median", short_number,
          [](const ReportedRun& run) { return median(run.history.curve("tflops")); });
  add_row(rows, runs, "MFU, median", percent, [](const ReportedRun& run) { return median(run.history.curve("mfu")); });
  add_row(rows, runs, "Step time, median", in_words,
          [](const ReportedRun& run) { return median(run.history.curve("step_time")); });
  add_row(rows, runs, "Goodput", percent, [](const ReportedRun& run) {
    return run.wall_time.total() > 0.0 ? Maybe(run.wall_time.productive_fraction()) : Maybe();
  });
  add_row(rows, runs, "Wall time", in_words, [](const ReportedRun& run) {
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
