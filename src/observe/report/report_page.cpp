#include "observe/report/report_page.h"

#include <fmt/format.h>

#include <cmath>

#include "core/clock.h"
#include "core/metric_names.h"
#include "core/process/version.h"
#include "core/words.h"
#include "observe/draw/svg/svg_plot.h"
#include "observe/report/html.h"
#include "observe/report/report_compare.h"
#include "observe/report/report_facts.h"

namespace megalith::observe {

namespace {

// "2026-01-31 12:34:56"
std::string moment_of(double seconds_since_epoch) {
  std::string text = utc_timestamp(seconds_since_epoch).substr(0, 19);
  text[10] = ' ';
  return text;
}

std::string title_of(const std::vector<ReportedRun>& runs) {
  std::string title = runs.front().name;
  if (runs.size() == 2) title += " and " + runs.back().name;
  if (runs.size() > 2) title += fmt::format(" and {} more", runs.size() - 1);
  return title;
}

std::string origin_line(const RunHistory& history) {
  if (history.first_time == 0.0) return "a run";
  std::string text = history.run_id.empty() ? "" : fmt::format("run {}, ", history.run_id);
  text += fmt::format("{} to {} UTC", moment_of(history.first_time), moment_of(history.last_time));
  if (history.nodes.size() == 1) text += ", on " + history.nodes.front();
  if (history.nodes.size() > 1) text += fmt::format(", on {} nodes", history.nodes.size());
  return text;
}

// What it was computed by, as its last start told it.
std::string machine_line(const RunHistory& history) {
  std::string text = history.program;
  for (const std::string& part : {history.accelerator, history.processor}) {
    if (!part.empty()) text += (text.empty() ? "" : "; ") + part;
  }
  return text;
}

std::string header(const std::vector<ReportedRun>& runs) {
  std::string html = fmt::format("<header><h1>{}</h1>", escape_html(title_of(runs)));
  const RunHistory& history = runs.front().history;
  if (const std::string state = state_of(history); runs.size() == 1 && !state.empty()) {
    const char* mood = history.complete() ? " good" : (history.end && !history.end->reason.empty() ? " bad" : "");
    html += fmt::format("<span class=\"state{}\">{}</span>", mood, escape_html(state));
  }
  html += fmt::format("</header>\n<p class=\"when\">{}",
                      escape_html(runs.size() == 1 ? origin_line(history) : "laid over each other"));
  const std::string machine = runs.size() == 1 ? machine_line(history) : "";
  return html + (machine.empty() ? "" : "<br>" + escape_html(machine)) + "</p>\n";
}

std::string warning(const std::string& words) {
  return fmt::format("<p class=\"warn\">{}</p>\n", escape_html(words));
}

std::string warnings(const std::vector<ReportedRun>& runs) {
  std::string html;
  for (const ReportedRun& run : runs) {
    const RunHistory& history = run.history;
    const std::string whose = runs.size() > 1 ? run.name + ": " : "";
    if (history.made_up_tokens())
      html += warning(whose + "the model learned from made-up tokens: give model.data.data_prefix.");
    if (history.unreadable_lines > 0)
      html += warning(fmt::format("{}{} lines of the logs could not be read (torn by a crash or damaged).", whose,
                                  history.unreadable_lines));
    if (history.skipped_steps > 0)
      html += warning(
          fmt::format("{}{} updates were skipped because a gradient was not finite.", whose, history.skipped_steps));
    std::vector<Point> broken = history.curve(metric::kTrainLoss).points();
    std::erase_if(broken, [](const Point& point) { return std::isfinite(point.y); });
    if (!broken.empty())
      html += warning(fmt::format("{}the loss was not finite in {} steps, first in step {:.0f}.", whose, broken.size(),
                                  broken.front().x));
  }
  return html;
}

std::string sections(const std::vector<Picture>& pictures) {
  std::string html;
  for (size_t i = 0; i < pictures.size(); ++i) {
    const bool begins = i == 0 || pictures[i].section != pictures[i - 1].section;
    if (begins) html += fmt::format("<h3>{}</h3>\n<div class=\"charts\">\n", escape_html(pictures[i].section));
    html += std::visit([](const auto& drawn) { return svg_figure(drawn); }, pictures[i].drawn);
    const bool ends = i + 1 == pictures.size() || pictures[i].section != pictures[i + 1].section;
    if (ends) html += "</div>\n";
  }
  return html;
}

// The longest of its uses, in words.
std::string main_costs(const Incident& incident) {
  std::string text;
  for (size_t i = 0; i < kTimeUses; ++i) {
    if (incident.seconds[i] < 0.05 * (incident.end - incident.begin)) continue;
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", label_of(static_cast<TimeUse>(i)),
                        duration_in_words(incident.seconds[i]));
  }
  return text;
}

std::string incident_table(const WallTime& wall_time) {
  constexpr size_t kShown = 50;
  if (wall_time.incidents.empty()) return "";
  std::string html =
      "<section class=\"card\"><h2>Incidents</h2><div class=\"scroll\"><table><tr><th>when</th><th>step</th><th>went "
      "on "
      "from</th><th>cost</th><th>of it</th><th>why</th></tr>\n";
  for (size_t i = 0; i < std::min(kShown, wall_time.incidents.size()); ++i) {
    const Incident& incident = wall_time.incidents[i];
    const auto step = [](int64_t number) {
      return number < 0 ? std::string("-") : with_commas(static_cast<double>(number));
    };
    html += fmt::format(
        "<tr><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td class=\"words\">{}</td><td class=\"words\">{}</td></tr>\n",
        moment_of(incident.begin), step(incident.last_step), step(incident.resumed_step),
        duration_in_words(incident.end - incident.begin), escape_html(main_costs(incident)),
        escape_html(incident.reason));
  }
  if (wall_time.incidents.size() > kShown)
    html += fmt::format("<tr><td class=\"words\">and {} more</td></tr>\n", wall_time.incidents.size() - kShown);
  return html + "</table></div></section>\n";
}

std::string span_table(const RunHistory& history) {
  if (history.spans.empty()) return "";
  std::string html =
      "<section class=\"card\"><h2>Spans</h2><div "
      "class=\"scroll\"><table><tr><th>what</th><th>times</th><th>total</th><th>mean</th><th>cut off</th></tr>\n";
  for (const auto& [name, total] : history.spans) {
    const double mean = total.ended > 0 ? total.seconds / static_cast<double>(total.ended) : 0.0;
    html += fmt::format("<tr><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td></tr>\n", escape_html(name),
                        total.ended, duration_in_words(total.seconds), duration_in_words(mean), total.open);
  }
  return html + "</table></div></section>\n";
}

std::string configs(const std::vector<ReportedRun>& runs) {
  std::string html = "<h3>Config</h3>\n<div class=\"stack\">\n";
  if (runs.size() > 1) html += different_settings(runs);
  for (const ReportedRun& run : runs) {
    html += fmt::format("<details class=\"card\"><summary>{}</summary><pre>{}</pre></details>\n",
                        runs.size() > 1 ? escape_html(run.name) : "Everything that was set",
                        escape_html(run.history.config));
  }
  return html + "</div>\n";
}

}  // namespace

std::string report_page(const std::vector<ReportedRun>& runs, const std::vector<Picture>& pictures) {
  std::string body = header(runs);
  body += runs.size() == 1 ? headline_cards(runs.front()) : comparison_table(runs);
  body += warnings(runs) + sections(pictures);
  if (runs.size() == 1) {
    body += "<div class=\"stack\">\n" + incident_table(runs.front().wall_time) + span_table(runs.front().history) +
            "</div>\n";
  }
  body += configs(runs);
  return html_page(title_of(runs), body,
                   fmt::format("Made by megalith report run ({}) from the logs in {}.", program_version(),
                               runs.size() == 1 ? "the run's directory" : "the runs' directories"));
}

}  // namespace megalith::observe
