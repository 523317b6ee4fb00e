#include "plan/search/plan_page.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/process/version.h"
#include "core/words.h"
#include "observe/draw/svg/svg_plot.h"
#include "observe/report/html.h"
#include "plan/search/describe_search.h"
#include "plan/search/layout_facts.h"
#include "plan/search/simulated_step.h"

namespace megalith::plan {

namespace {

using observe::Bar;
using observe::Bars;
using observe::escape_html;

constexpr double kGib = 1024.0 * 1024.0 * 1024.0;
// Boxes of a timeline that a browser draws without delay.
constexpr int64_t kMostBoxes = 16384;

double gib_of(const PlannedLayout& layout) {
  return static_cast<double>(layout.memory.total()) / kGib;
}

std::string milliseconds(double seconds) {
  return fmt::format("{:.4g} ms", 1000 * seconds);
}

std::string facts(const SearchRequest& request, const PlannedLayout& best, const Circumstances& circumstances) {
  const Price price = price_of(best, request.cluster, circumstances);
  observe::FactCards cards;
  cards.add("Step", fmt::format("{:.4g} s", best.seconds()),
            fmt::format("{} tokens/s", with_commas(tokens_of_step(best.features) / best.seconds())));
  cards.add("MFU", fmt::format("{:.1f} %", 100 * mfu(best.features, best.seconds())), "attention counted in full");
  cards.add("Memory", bytes_in_words(static_cast<double>(best.memory.total())),
            fmt::format("of {:g} GiB, on stage {}", request.cluster.gpu.memory_gib, best.worst_stage));
  const bool ends = price.goodput > 0;
  cards.add("Days", ends ? fmt::format("{:.2f}", price.days) : "never",
            fmt::format("for {:.4g} tokens", circumstances.tokens));
  if (ends && circumstances.price > 0) {
    cards.add("Cost", with_commas(price.cost),
              fmt::format("{} GPU-hours at {:g}", with_commas(price.gpu_hours), circumstances.price));
  } else if (ends) {
    cards.add("GPU-hours", with_commas(price.gpu_hours));
  }
  cards.add("Goodput", fmt::format("{:.2f} %", 100 * price.goodput),
            std::isfinite(price.between_failures_s)
                ? fmt::format("a checkpoint every {}, a failure every {}", counted(price.interval_steps, "step"),
                              duration_in_words(price.between_failures_s))
                : "without failures");
  return cards.to_html();
}

std::string front_figure(const SearchRequest& request, const SearchResult& result) {
  observe::Series front{.label = "no other is faster and smaller", .ink = "train", .points = {}, .mark = {}};
  front.mark = observe::Mark::dots;
  for (const PlannedLayout& layout : result.front) front.points.push_back({layout.seconds(), gib_of(layout)});
  return observe::svg_figure(observe::Plot{
      .name = "front",
      .title = "Step time and memory",
      .x_label = "seconds a step",
      .y_label =
          fmt::format("GiB of the largest rank; {} has {:g}", request.cluster.gpu.name, request.cluster.gpu.memory_gib),
      .series = {std::move(front)},
      .moments = {},
      .from_zero = true,
      .shows_all = true,
      .wide = true});
}

// Names of layouts and sizes on one line each: a narrow page scrolls the table.
std::string unbroken(std::string text) {
  for (size_t at = text.find(' '); at != std::string::npos; at = text.find(' ', at)) text.replace(at, 1, "&nbsp;");
  return text;
}

std::string layout_table(const SearchResult& result, const std::vector<PlannedLayout>& layouts) {
  std::string html =
      "<section class=\"card\"><div class=\"scroll\"><table><tr><th>layout</th><th>step s</th><th>MFU %</th>"
      "<th>memory</th><th>stage</th><th>recompute</th></tr>\n";
  for (const PlannedLayout& layout : layouts)
    html += fmt::format("<tr><td>{}</td><td>{:.3f}</td><td>{:.1f}</td><td>{}</td><td>{}</td><td>{}</td></tr>\n",
                        unbroken(marked_name(layout, result)), layout.seconds(),
                        100 * mfu(layout.features, layout.seconds()),
                        unbroken(bytes_in_words(static_cast<double>(layout.memory.total()))), layout.worst_stage,
                        word_of(layout.candidate.recompute));
  return html + "</table></div></section>\n";
}

std::string tie_note(const SearchResult& result) {
  if (result.best.size() < 2) return {};
  std::string note = "~ within 2 % of the fastest, which the model cannot tell apart";
  if (const std::string preference = describe_preference(result); !preference.empty())
    note += ". Preferred " + preference;
  return fmt::format("<p class=\"when\">{}.</p>\n", escape_html(note));
}

std::string parts_figure(const std::vector<PlannedLayout>& layouts) {
  Bars bars{.name = "parts", .title = "Where a step goes", .bars = {}};
  for (const PlannedLayout& layout : layouts) {
    Bar bar{.label = short_name(layout.candidate), .parts = {}, .value = fmt::format("{:.3f} s", layout.seconds())};
    for (const NamedPart& part : kNamedParts) {
      const double seconds = layout.parts.*part.seconds;
      if (seconds <= 0) continue;
      bar.parts.push_back({std::string(part.name), std::string(part.ink), seconds,
                           fmt::format("{}: {}, {:.1f} % of the step", part.name, milliseconds(seconds),
                                       100 * seconds / layout.seconds())});
    }
    bars.bars.push_back(std::move(bar));
  }
  return observe::svg_figure(bars);
}

// As many micro batches as show how a pipeline fills, runs and drains, and as a page can hold: one or two for each
// stage, because interleaved stages idle where the last group of micro batches is not whole.
int64_t shown_micro_batches(const PlannedLayout& best) {
  const parallel::Layout& layout = best.candidate.layout;
  const int64_t all = best.features.micro_batches();
  const int64_t boxes_each = 2 * layout.pipeline * layout.chunks;
  const int64_t groups = std::clamp<int64_t>(kMostBoxes / (boxes_each * layout.pipeline), 1, 2);
  return std::min(all, groups * layout.pipeline);
}

Bar stage_bar(const StepTimeline& timeline, size_t stage, int64_t layers) {
  const StageTimeline& row = timeline.simulation.stages[stage];
  Bar bar{.label = fmt::format("stage {}", stage), .parts = {}, .value = counted(layers, "layer")};
  double clock = 0.0;
  const auto wait_until = [&](double time) {
    if (time > clock) bar.parts.push_back({"idle", "grid", time - clock, "idle for " + milliseconds(time - clock)});
    clock = std::max(clock, time);
  };
  for (const Span& span : row.spans) {
    const parallel::Action& action = timeline.schedules[stage][span.action];
    if (!parallel::is_compute(action) || span.end <= span.start) continue;
    wait_until(span.start);
    const bool forward = action.kind == parallel::ActionKind::forward;
    bar.parts.push_back({forward ? "forward" : "backward", forward ? "part-tensor" : "part-compute",
                         span.end - span.start,
                         fmt::format("{} of micro batch {}, chunk {}: {}", forward ? "forward" : "backward",
                                     action.micro_batch, action.chunk, milliseconds(span.end - span.start))});
    clock = span.end;
  }
  wait_until(timeline.simulation.duration);
  return bar;
}

std::string pipeline_figure(const SearchRequest& request, const PlannedLayout& best) {
  const parallel::Layout& layout = best.candidate.layout;
  if (layout.pipeline == 1) return {};
  const int64_t shown = shown_micro_batches(best);
  const StepTimeline timeline = simulated_pipeline(best.features, layout, request.constants, best.times.blocks, shown);
  const int64_t all = best.features.micro_batches();
  Bars bars{.name = "pipeline",
            .title = short_name(best.candidate) +
                     (shown < all ? fmt::format(" with {} of the {} micro batches of a step", shown, all)
                                  : fmt::format(", the {} micro batches of a step", all)),
            .bars = {}};
  for (size_t stage = 0; stage < timeline.schedules.size(); ++stage)
    bars.bars.push_back(stage_bar(timeline, stage, best.features.layers_of_stage(static_cast<int64_t>(stage))));
  return "<h3>Pipeline</h3>\n<div class=\"charts\">\n" + observe::svg_figure(bars) + "</div>\n";
}

}  // namespace

std::string plan_page(const SearchRequest& request, const SearchResult& result, const Circumstances& circumstances) {
  const PlannedLayout& best = result.best.at(0);
  const std::string title =
      fmt::format("{} on {} {}", request.run.name, request.cluster.gpus, request.cluster.gpu.name);
  std::string body =
      fmt::format("<header><h1>{}</h1></header>\n<p class=\"when\">{}, recompute {}</p>\n", escape_html(title),
                  parallel::to_string(best.candidate.layout), word_of(best.candidate.recompute));
  body += facts(request, best, circumstances);
  body += "<h3>Layouts</h3>\n<div class=\"charts\">\n" + parts_figure(result.best) + "</div>\n<div class=\"stack\">" +
          layout_table(result, result.best) + "</div>\n" + tie_note(result);
  if (result.front.size() > 1)
    body += "<h3>Time against memory</h3>\n<div class=\"charts\">\n" + front_figure(request, result) +
            "</div>\n<div class=\"stack\">" + layout_table(result, result.front) + "</div>\n";
  body += pipeline_figure(request, best);
  body += "<h3>In words</h3>\n<div class=\"stack\">\n";
  body += fmt::format("<details class=\"card\"><summary>Where each millisecond goes</summary><pre>{}</pre></details>\n",
                      escape_html(explain(request, best, circumstances)));
  if (result.best.size() > 1)
    body += fmt::format("<details class=\"card\"><summary>What the others lose</summary><pre>{}</pre></details>\n",
                        escape_html(explain_losses(result.best)));
  body += "</div>\n";
  return observe::html_page(title, body, fmt::format("Made by megalith plan ({}).", program_version()));
}

}  // namespace megalith::plan
