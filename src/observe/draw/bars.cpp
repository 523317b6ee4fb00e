#include "observe/draw/bars.h"

#include <algorithm>

namespace megalith::observe {

namespace {

constexpr double kRow = 28.0, kThickness = 18.0, kLetter = 6.9;

double length_of(const Bar& bar) {
  double sum = 0.0;
  for (const BarPart& part : bar.parts) sum += part.size;
  return sum;
}

double widest(const std::vector<Bar>& bars, const std::string Bar::*words) {
  size_t letters = 0;
  for (const Bar& bar : bars) letters = std::max(letters, (bar.*words).size());
  return kLetter * static_cast<double>(letters) + 12.0;
}

}  // namespace

Sheet sheet_of(const Bars& bars) {
  return {.left = std::min(170.0, widest(bars.bars, &Bar::label)),
          .right = widest(bars.bars, &Bar::value),
          .top = 2,
          .bottom = 2,
          .height = kRow * static_cast<double>(bars.bars.size())};
}

void draw(const Bars& bars, Surface& surface) {
  double longest = 0.0;
  for (const Bar& bar : bars.bars) longest = std::max(longest, length_of(bar));
  if (longest <= 0.0) longest = 1.0;
  double y = (kRow - kThickness) / 2;
  for (const Bar& bar : bars.bars) {
    surface.text({.dx = -8, .dy = y + 13}, bar.label, {.ink = "text", .anchor = Anchor::end});
    double across = 0.0;
    for (const BarPart& part : bar.parts) {
      const double share = part.size / longest;
      if (share > 0.0) surface.bar({.across = across, .dy = y}, share, kThickness, part.ink, part.hint);
      across += share;
    }
    surface.text({.across = across, .dx = 8, .dy = y + 13}, bar.value, {});
    y += kRow;
  }
}

}  // namespace megalith::observe
