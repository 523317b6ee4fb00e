#include "observe/report_facts.h"

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

struct Cards {
  std::string html = "<dl class=\"facts\">\n";

  void add(const std::string& name, const std::string& value, const std::string& detail = "") {
    html += fmt::format("<div class=\"fact\"><dt>{}</dt><dd>{}</dd>{}</div>\n", escape_html(name), escape_html(value),
                        detail.empty() ? "" : "<p>" + escape_html(detail) + "</p>");
  }
};

const Point* lowest(const std::vector<Point>& points) {
  const auto found = std::min_element(points.begin(), points.end(), [](const Point& a, const Point& b) {
    return std::isfinite(a.y) && (!std::isfinite(b.y) || a.y < b.y);
  });
  return found == points.end() ? nullptr : &*found;
}

void add_losses(Cards& cards, const RunHistory& history) {
  if (const auto loss = history.loss()) {
    const std::vector<Point>& points = history.curve("reduced_train_loss").points();
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

void add_progress(Cards& cards, const RunHistory& history) {
  if (!history.last_step) return;
  const auto done = static_cast<double>(*history.last_step + 1);
  const auto wanted = history.max_steps();
  std::string detail = wanted ? fmt::format("of {}", with_thousands(static_cast<double>(*wanted))) : "";
  if (const auto tokens = history.tokens_per_step())
    detail += fmt::format("{}{} tokens", detail.empty() ? "" : "; ", short_number(*tokens * done));
  cards.add("Steps", with_thousands(done), detail);
}

void add_speed(Cards& cards, const RunHistory& history) {
  const std::vector<double> speeds = sorted_values(throughput_of(history));
  if (!speeds.empty()) {
    const auto tflops = median(history.curve("tflops"));
    cards.add("Tokens/s", with_thousands(quantile(speeds, 0.5)),
              tflops ? fmt::format("{:.3g} TFLOPS; medians", *tflops) : "median");
  }
  if (const auto mfu = median(history.curve("mfu"))) {
    const auto floor = median(history.curve("floor_fraction"));
    cards.add("MFU", fmt::format("{:.1f}%", 100.0 * *mfu),
              floor ? fmt::format("{:.1f}% of the floor", 100.0 * *floor) : "median");
  }
  const std::vector<double> times = sorted_values(history.curve("step_time").points());
  if (!times.empty()) {
    cards.add("Step time", in_words(quantile(times, 0.5)),
              fmt::format("99%: {}; slowest {}", in_words(quantile(times, 0.99)), in_words(times.back())));
  }
}

void add_time(Cards& cards, const ReportedRun& run) {
  const RunHistory& history = run.history;
  if (run.wall_time.total() > 0.0) {
    const auto incidents = run.wall_time.incidents.size();
    cards.add("Goodput", fmt::format("{:.1f}%", 100.0 * run.wall_time.productive_fraction()),
              fmt::format("{} incident{}", incidents, incidents == 1 ? "" : "s"));
  }
  if (history.last_time > history.first_time) {
    cards.add("Wall time", in_words(history.last_time - history.first_time),
              history.starts.size() > 1 ? fmt::format("{} restarts", history.starts.size() - 1) : "");
  }
  if (!history.memory.empty()) {
    double sum = 0.0;
    for (const auto& [arena, bytes] : history.memory) sum += bytes;
    cards.add("Memory", bytes_in_words(sum), fmt::format("of one rank, in {} arenas", history.memory.size()));
  }
}

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

std::string cell(const Row& row, size_t column) {
  const auto& value = row.values[column];
  if (!value) return "<td>-</td>";
  const auto& first = row.values.front();
  std::string change;
  if (column > 0 && first && *first != 0.0 && std::isfinite(*value) && *value != *first)
    change = fmt::format(" <small>{:+.2g}%</small>", 100.0 * (*value / *first - 1.0));
  return fmt::format("<td>{}{}</td>", escape_html(row.show(*value)), change);
}

}  // namespace

std::string headline_cards(const ReportedRun& run) {
  Cards cards;
  add_losses(cards, run.history);
  add_progress(cards, run.history);
  add_speed(cards, run.history);
  add_time(cards, run);
  return cards.html + "</dl>\n";
}

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
