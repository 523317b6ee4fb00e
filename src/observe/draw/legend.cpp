#include "observe/draw/legend.h"

#include <algorithm>

namespace megalith::observe {

namespace {

void add_once(std::vector<LegendEntry>& entries, LegendEntry entry) {
  if (std::find(entries.begin(), entries.end(), entry) == entries.end()) entries.push_back(std::move(entry));
}

std::vector<LegendEntry> unless_alone(std::vector<LegendEntry> entries) {
  if (entries.size() < 2) entries.clear();
  return entries;
}

}  // namespace

std::vector<LegendEntry> legend_of(const Plot& plot) {
  std::vector<LegendEntry> entries;
  for (const Series& series : plot.series) {
    if (!series.points.empty()) add_once(entries, {series.label, series.ink, series.mark == Mark::faint});
  }
  return unless_alone(std::move(entries));
}

std::vector<LegendEntry> legend_of(const Bars& bars) {
  std::vector<LegendEntry> entries;
  for (const Bar& bar : bars.bars) {
    if (bar.parts.size() < 2) continue;
    for (const BarPart& part : bar.parts) add_once(entries, {part.label, part.ink});
  }
  return unless_alone(std::move(entries));
}

}  // namespace megalith::observe
