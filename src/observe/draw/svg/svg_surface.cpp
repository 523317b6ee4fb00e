#include "observe/draw/svg/svg_surface.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "observe/report/html.h"

namespace megalith::observe {

namespace {

constexpr double kUnits = 1000.0;
// Far outside is far enough: a path with huge numbers is drawn wrongly by some browsers.
constexpr double kFar = 20.0;

double units(double share) {
  return std::clamp(share, -kFar, kFar) * kUnits;
}

// Shares are percentages of the area; the pixels beside them are a translation.
std::string shift(const Position& position) {
  if (position.dx == 0.0 && position.dy == 0.0) return "";
  return fmt::format(R"-( transform="translate({:g} {:g})")-", position.dx, position.dy);
}

std::string pen(const Stroke& stroke) {
  std::string attributes = fmt::format(R"-(stroke="var(--{})")-", stroke.ink);
  if (stroke.width != 1.0) attributes += fmt::format(R"( stroke-width="{:g}")", stroke.width);
  if (stroke.opacity != 1.0) attributes += fmt::format(R"( stroke-opacity="{:g}")", stroke.opacity);
  if (stroke.dashed) attributes += R"( stroke-dasharray="3 4")";
  return attributes;
}

}  // namespace

void SvgSurface::line(const Position& from, const Position& to, const Stroke& stroke) {
  // A line that is a few pixels long has one position and a length.
  if (from.across == to.across && from.down == to.down) {
    body_ += fmt::format(R"(<svg x="{:.2f}%" y="{:.2f}%" overflow="visible"><path d="M{:g} {:g}L{:g} {:g}" {}/></svg>)",
                         from.across * 100, from.down * 100, from.dx, from.dy, to.dx, to.dy, pen(stroke));
    return;
  }
  body_ += fmt::format(R"(<line x1="{:.2f}%" y1="{:.2f}%" x2="{:.2f}%" y2="{:.2f}%"{} {}/>)", from.across * 100,
                       from.down * 100, to.across * 100, to.down * 100, shift(from), pen(stroke));
}

void SvgSurface::stretched(const std::string& path, const std::string& attributes) {
  if (path.empty()) return;
  body_ += fmt::format(
      R"(<svg class="data" width="100%" height="100%" viewBox="0 0 {0:g} {0:g}" preserveAspectRatio="none"><path d="{1}" {2}/></svg>)",
      kUnits, path, attributes);
}

void SvgSurface::curve(const std::vector<Point>& shares, const Stroke& stroke) {
  std::string path;
  bool drawing = false;
  for (const Point& share : shares) {
    if (!std::isfinite(share.x) || !std::isfinite(share.y)) {
      drawing = false;
      continue;
    }
    path += fmt::format("{}{:.1f} {:.1f}", drawing ? "L" : "M", units(share.x), units(share.y));
    drawing = true;
  }
  stretched(path, R"(fill="none" stroke-linejoin="round" stroke-linecap="round" vector-effect="non-scaling-stroke" )" +
                      pen(stroke));
}

void SvgSurface::boxes(const std::vector<Rectangle>& shares, std::string_view ink, double opacity) {
  std::string path;
  for (const Rectangle& box : shares) {
    path += fmt::format("M{:.2f} {:.2f}h{:.2f}v{:.2f}h{:.2f}z", units(box.x), units(box.y), units(box.width),
                        units(box.height), -units(box.width));
  }
  stretched(path, fmt::format(R"-(fill="var(--{})" fill-opacity="{:g}")-", ink, opacity));
}

void SvgSurface::bar(const Position& corner, double share, double height, std::string_view ink, std::string_view hint) {
  body_ += fmt::format(
      R"-(<rect x="{:.3f}%" y="{:.3f}%" width="{:.3f}%" height="{:g}"{} fill="var(--{})"><title>{}</title></rect>)-",
      corner.across * 100, corner.down * 100, share * 100, height, shift(corner), ink, escape_html(hint));
}

void SvgSurface::dot(const Position& centre, double radius, std::string_view ink) {
  body_ += fmt::format(R"-(<circle cx="{:.2f}%" cy="{:.2f}%" r="{:g}"{} fill="var(--{})"/>)-", centre.across * 100,
                       centre.down * 100, radius, shift(centre), ink);
}

void SvgSurface::text(const Position& baseline, std::string_view words, const Lettering& lettering) {
  body_ +=
      fmt::format(R"-(<text x="{:.2f}%" y="{:.2f}%"{} text-anchor="{}" font-size="{:g}"{} fill="var(--{})">{}</text>)-",
                  baseline.across * 100, baseline.down * 100, shift(baseline), name_of(lettering.anchor),
                  lettering.size, lettering.bold ? R"( font-weight="600")" : "", lettering.ink, escape_html(words));
}

}  // namespace megalith::observe
