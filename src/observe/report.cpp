#include "observe/report.h"

#include <fmt/format.h>

#include <cmath>

#include "core/clock.h"
#include "core/error.h"
#include "core/file.h"
#include "observe/run_history.h"
#include "observe/svg_plot.h"

namespace megalith::observe {

namespace fs = std::filesystem;

namespace {
constexpr const char* kStyle =
    R"(:root{color-scheme:light dark;--page:#f6f7f9;--card:#fff;--text:#1b1f24;--muted:#5f6873;--grid:#e4e7eb;
--train:#2563eb;--validation:#d9480f;--time:#0f766e}
@media (prefers-color-scheme:dark){:root{--page:#111417;--card:#1a1e23;--text:#e8eaed;--muted:#9aa4af;--grid:#2b3138;
--train:#7aa7ff;--validation:#ff9f6b;--time:#4fd1c0}}
*{box-sizing:border-box}
body{margin:0;background:var(--page);color:var(--text);font:16px/1.5 system-ui,sans-serif}
main{max-width:1100px;margin:0 auto;padding:24px 16px 48px}
h1{font-size:1.5rem;line-height:1.25;margin:0;overflow-wrap:anywhere}
h2{font-size:1rem;margin:0 0 8px}
.when{color:var(--muted);margin:4px 0 20px}
.facts{display:grid;grid-template-columns:repeat(auto-fit,minmax(130px,1fr));gap:12px;margin:0 0 16px}
.fact,.card{background:var(--card);border:1px solid var(--grid);border-radius:10px;padding:12px 14px}
.fact dt{color:var(--muted);font-size:.8rem}
.fact dd{margin:2px 0 0;font-size:1.2rem;font-weight:600;font-variant-numeric:tabular-nums}
.charts{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,420px),1fr));gap:16px}
.card{margin-bottom:16px;overflow-x:auto}
.charts .card{margin-bottom:0}
.charts{margin-bottom:16px}
table{border-collapse:collapse;width:100%;font-variant-numeric:tabular-nums}
th,td{text-align:right;padding:4px 8px;border-bottom:1px solid var(--grid)}
th:first-child,td:first-child{text-align:left}
th{color:var(--muted);font-weight:500;font-size:.85rem}
summary{cursor:pointer;font-weight:600}
pre{overflow-x:auto;font:13px/1.45 ui-monospace,monospace;margin:12px 0 0}
.warn{color:var(--validation)}
.train{stroke:var(--train);fill:var(--train)}
.validation{stroke:var(--validation);fill:var(--validation)}
.time{stroke:var(--time);fill:var(--time)}
)";

std::string fact(const std::string& name, const std::string& value) {
  return fmt::format("<div class=\"fact\"><dt>{}</dt><dd>{}</dd></div>\n", escape_html(name), escape_html(value));
}

// Of a number that is not negative.
std::string with_thousands(double number) {
  const std::string digits = fmt::format("{:.0f}", number);
  std::string text;
  for (size_t i = 0; i < digits.size(); ++i) {
    if (i > 0 && (digits.size() - i) % 3 == 0) text += ',';
    text += digits[i];
  }
  return text;
}

std::string facts(const RunHistory& history) {
  std::string html = "<dl class=\"facts\">\n";
  if (!history.train_loss.empty()) {
    html += fact("Steps", with_thousands(static_cast<double>(history.train_loss.rbegin()->first + 1)));
    html += fact("Final training loss", fmt::format("{:.4f}", history.train_loss.rbegin()->second));
  }
  if (!history.validation_loss.empty()) {
    const double loss = history.validation_loss.rbegin()->second;
    html += fact("Final validation loss", fmt::format("{:.4f}", loss));
    html += fact("Validation perplexity", fmt::format("{:.4g}", std::exp(loss)));
  }
  if (const auto value = median(history.step_seconds))
    html += fact("Step time (median)", fmt::format("{:.3g} s", *value));
  if (const auto value = median(history.tokens_per_second)) html += fact("Tokens/s (median)", with_thousands(*value));
  if (const auto value = median(history.tflops)) html += fact("TFLOPS (median)", fmt::format("{:.3g}", *value));
  return html + "</dl>\n";
}

std::string charts(const RunHistory& history) {
  const Plot loss{.title = "Loss by step",
                  .x_label = "step",
                  .y_label = "loss",
                  .series = {{"training", "train", to_points(history.train_loss)},
                             {"validation", "validation", to_points(history.validation_loss)}}};
  const Plot time{.title = "Time of a step",
                  .x_label = "step",
                  .y_label = "seconds",
                  .series = {{"step time", "time", to_points(history.step_seconds)}},
                  .from_zero = true};
  std::string html = "<div class=\"charts\">\n";
  for (const Plot& plot : {loss, time}) {
    html += fmt::format("<section class=\"card\"><h2>{}</h2>{}</section>\n", escape_html(plot.title), svg_plot(plot));
  }
  return html + "</div>\n";
}

std::string span_table(const RunHistory& history) {
  if (history.spans.empty()) return "";
  std::string html =
      "<section class=\"card\"><h2>Where the time "
      "went</h2><table><tr><th>what</th><th>times</th><th>total</th><th>mean</th>"
      "<th>cut off</th></tr>\n";
  for (const auto& [name, total] : history.spans) {
    const double mean = total.ended > 0 ? total.seconds / static_cast<double>(total.ended) : 0.0;
    html += fmt::format("<tr><td>{}</td><td>{}</td><td>{}</td><td>{:.3g} s</td><td>{}</td></tr>\n", escape_html(name),
                        total.ended, format_duration(total.seconds), mean, total.open);
  }
  return html + "</table></section>\n";
}
}  // namespace

fs::path write_report(const fs::path& run_directory) {
  const RunHistory history = read_run_history(run_directory);
  if (history.train_loss.empty() && history.spans.empty() && history.config.empty()) {
    user_error("{} holds no run to report on: neither dllogger.json nor events.jsonl has a readable record",
               run_directory.string());
  }
  std::error_code ignored;
  const fs::path absolute = fs::weakly_canonical(run_directory, ignored);
  const std::string name = absolute.filename().string();
  std::string html = fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>{} - Megalith</title>\n"
      "<style>\n{}{}</style>\n</head>\n<body>\n<main>\n<h1>{}</h1>\n",
      escape_html(name), kStyle, plot_style(), escape_html(name));
  html += history.first_time.empty()
              ? "<p class=\"when\">a Megalith run</p>\n"
              : fmt::format("<p class=\"when\">run {}, {} to {}</p>\n", escape_html(history.run_id),
                            escape_html(history.first_time.substr(0, 19)),
                            escape_html(history.last_time.substr(0, 19) + " UTC"));
  html += facts(history) + charts(history) + span_table(history);
  if (history.unreadable_lines > 0) {
    html += fmt::format("<p class=\"warn\">{} lines of the logs could not be read (torn by a crash or damaged).</p>\n",
                        history.unreadable_lines);
  }
  html += fmt::format("<details class=\"card\"><summary>Config</summary><pre>{}</pre></details>\n",
                      escape_html(history.config));
  html += "</main>\n</body>\n</html>\n";
  const fs::path path = run_directory / "report.html";
  replace_file(path, html);
  return path;
}

}  // namespace megalith::observe
