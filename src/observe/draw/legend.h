#pragma once

#include <string>
#include <vector>

#include "observe/draw/bars.h"
#include "observe/draw/plot.h"

namespace megalith::observe {

struct LegendEntry {
  std::string label;
  std::string ink;
  bool faint = false;

  bool operator==(const LegendEntry&) const = default;
};

// Nothing where there is nothing to tell apart.
std::vector<LegendEntry> legend_of(const Plot& plot);
std::vector<LegendEntry> legend_of(const Bars& bars);

}  // namespace megalith::observe
