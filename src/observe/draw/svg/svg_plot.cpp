#include "observe/draw/svg/svg_plot.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>

#include "observe/draw/curve.h"
#include "observe/draw/legend.h"
#include "observe/draw/svg/svg_surface.h"
#include "observe/report/html.h"

namespace megalith::observe {

namespace {

using nlohmann::ordered_json;

constexpr size_t kHoverBuckets = 300;

std::string sheet(const Sheet& sheet, const std::string& class_name, const std::string& title,
                  const std::string& elements) {
  return fmt::format(
      R"(<div class="sheet{}" style="padding:{:g}px {:g}px {:g}px {:g}px"><svg class="area" role="img" aria-label="{}" width="100%" height="{:g}">{}</svg></div>)",
      class_name, sheet.top, sheet.right, sheet.bottom, sheet.left, escape_html(title), sheet.height, elements);
}

std::string view(const Plot& plot, const Axes& axes, const std::string& class_name) {
  SvgSurface surface;
  draw(plot, axes, surface);
  return sheet(sheet_of(plot), class_name, plot.title, surface.elements());
}

// Six digits are more than a pixel can show.
double rounded(double value) {
  if (!std::isfinite(value)) return value;
  const std::string text = fmt::format("{:.6g}", value);
  double number = 0.0;  // also where it is too small for its digits
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

ordered_json hover_data(const Plot& plot, const Axes& axes) {
  ordered_json series = ordered_json::array();
  for (const Series& one : plot.series) {
    ordered_json xs = ordered_json::array();
    ordered_json ys = ordered_json::array();
    for (const Point& point : thin_out(one.points, kHoverBuckets)) {
      xs.push_back(rounded(point.x));
      ys.push_back(rounded(point.y));  // null where it is not finite
    }
    series.push_back({{"label", one.label}, {"ink", one.ink}, {"x", xs}, {"y", ys}});
  }
  const bool columns = !plot.series.empty() && plot.series.front().mark >= Mark::columns;
  return {{"x", {axes.x.low, axes.x.high}},
          {"xLabel", plot.x_label},
          {"columnWidth", columns ? plot.column_width : 0.0},
          {"series", series}};
}

std::string legend(const std::vector<LegendEntry>& entries) {
  if (entries.empty()) return "";
  std::string html = "<div class=\"legend\">";
  for (const LegendEntry& entry : entries) {
    html += fmt::format(R"(<span><i style="background:var(--{}){}"></i>{}</span>)", entry.ink,
                        entry.faint ? ";opacity:.4" : "", escape_html(entry.label));
  }
  return html + "</div>";
}

std::string heading(const std::string& title, const std::string& detail, bool offers_log) {
  return fmt::format(
      R"(<figcaption><h2>{}{}</h2><div class="tools">{}<button class="save" title="save as PNG">PNG</button></div></figcaption>)",
      escape_html(title), detail.empty() ? "" : fmt::format(" <small>{}</small>", escape_html(detail)),
      offers_log ? R"(<button class="log" title="logarithmic axis" aria-pressed="false">log</button>)" : "");
}

}  // namespace

std::string svg_figure(const Plot& plot) {
  const Axes axes = axes_of(plot);
  std::string html = fmt::format(
      R"(<figure class="card plot{}" id="{}" data-plot="{}">)", plot.wide ? " wide" : "", escape_html(plot.name),
      escape_html(hover_data(plot, axes).dump(-1, ' ', false, ordered_json::error_handler_t::replace)));
  html += heading(plot.title, plot.y_label, plot.offers_log) + legend(legend_of(plot)) + view(plot, axes, " linear");
  if (plot.offers_log) {
    Plot other = plot;
    other.logarithmic = true;
    other.from_zero = false;
    html += view(other, axes_of(other), " logarithmic");
  }
  return html + "</figure>\n";
}

std::string svg_figure(const Bars& bars) {
  SvgSurface surface;
  draw(bars, surface);
  return fmt::format(R"(<figure class="card bars" id="{}">)", escape_html(bars.name)) + heading(bars.title, "", false) +
         legend(legend_of(bars)) + sheet(sheet_of(bars), "", bars.title, surface.elements()) + "</figure>\n";
}

}  // namespace megalith::observe
