#include "observe/draw/png/png_surface.h"

#include <algorithm>
#include <cmath>

#include "observe/draw/palette.h"
#include "observe/draw/png/png_font.h"

namespace megalith::observe {

namespace {

constexpr double kDash = 3.0, kGap = 4.0;
constexpr double kPen = 0.095, kBoldPen = 0.15;  // shares of the size of letters
// Far outside is far enough for a curve that leaves the area.
constexpr double kFar = 3.0;

int pixels(double length) {
  return static_cast<int>(std::lround(length));
}

// The nearest edge between pixels, the same for numbers that differ by rounding alone.
double to_edge(double length) {
  return std::floor(length + 0.5 + 1e-6);
}

std::vector<Segment> dashes(const Segment& segment, double dash, double gap) {
  const Point& from = segment.first;
  const Point& to = segment.second;
  const double length = std::hypot(to.x - from.x, to.y - from.y);
  const auto at = [&](double along) {
    return Point{std::lerp(from.x, to.x, along / length), std::lerp(from.y, to.y, along / length)};
  };
  std::vector<Segment> pieces;
  for (double along = 0.0; along < length; along += dash + gap) {
    pieces.push_back({at(along), at(std::min(along + dash, length))});
  }
  return pieces;
}

}  // namespace

PngSurface::PngSurface(const Sheet& sheet, const Options& options)
    : options_(options),
      area_{.x = sheet.left * options.scale,
            .y = (sheet.top + options.heading) * options.scale,
            .width = (options.width - sheet.left - sheet.right) * options.scale,
            .height = sheet.height * options.scale},
      image_(pixels(options.width * options.scale),
             pixels((options.heading + sheet.top + sheet.height + sheet.bottom) * options.scale),
             options.dark ? ink_named("card").dark : ink_named("card").light) {}

uint32_t PngSurface::colour_of(std::string_view ink) const {
  return options_.dark ? ink_named(ink).dark : ink_named(ink).light;
}

Point PngSurface::pixels_of(const Position& position) const {
  return {area_.x + position.across * area_.width + position.dx * options_.scale,
          area_.y + position.down * area_.height + position.dy * options_.scale};
}

Rectangle PngSurface::pixels_of(const Rectangle& shares) const {
  return {area_.x + shares.x * area_.width, area_.y + shares.y * area_.height, shares.width * area_.width,
          shares.height * area_.height};
}

void PngSurface::line(const Position& from, const Position& to, const Stroke& stroke) {
  const Segment segment{pixels_of(from), pixels_of(to)};
  const std::vector<Segment> pieces =
      stroke.dashed ? dashes(segment, kDash * options_.scale, kGap * options_.scale) : std::vector<Segment>{segment};
  image_.stroke(pieces, stroke.width * options_.scale, colour_of(stroke.ink), stroke.opacity, image_.bounds());
}

void PngSurface::curve(const std::vector<Point>& shares, const Stroke& stroke) {
  std::vector<Segment> segments;
  for (size_t i = 1; i < shares.size(); ++i) {
    const auto pixel = [&](const Point& share) {
      return pixels_of({.across = std::clamp(share.x, -kFar, kFar), .down = std::clamp(share.y, -kFar, kFar)});
    };
    const bool drawable = std::isfinite(shares[i - 1].x + shares[i].x) && std::isfinite(shares[i - 1].y + shares[i].y);
    if (drawable) segments.push_back({pixel(shares[i - 1]), pixel(shares[i])});
  }
  image_.stroke(segments, stroke.width * options_.scale, colour_of(stroke.ink), stroke.opacity, area_);
}

void PngSurface::boxes(const std::vector<Rectangle>& shares, std::string_view ink, double opacity) {
  for (const Rectangle& share : shares) {
    // On whole pixels: between soft edges of neighbours the paper would shine through.
    const Rectangle box = pixels_of(share);
    const double left = to_edge(box.x), top = to_edge(box.y);
    image_.fill({left, top, to_edge(box.x + box.width) - left, to_edge(box.y + box.height) - top}, colour_of(ink),
                opacity);
  }
}

void PngSurface::bar(const Position& corner, double share, double height, std::string_view ink,
                     std::string_view /*hint*/) {
  const Point at = pixels_of(corner);
  image_.fill({at.x, at.y, share * area_.width, height * options_.scale}, colour_of(ink), 1.0);
}

void PngSurface::dot(const Position& centre, double radius, std::string_view ink) {
  const Point at = pixels_of(centre);
  image_.stroke({{at, at}}, 2 * radius * options_.scale, colour_of(ink), 1.0, image_.bounds());
}

void PngSurface::text(const Position& baseline, std::string_view words, const Lettering& lettering) {
  letters(pixels_of(baseline), words, lettering);
}

void PngSurface::heading_text(const Point& baseline, std::string_view words, const Lettering& lettering) {
  letters({baseline.x * options_.scale, baseline.y * options_.scale}, words, lettering);
}

void PngSurface::heading_swatch(const Point& corner, double size, std::string_view ink, double opacity) {
  image_.fill({corner.x * options_.scale, corner.y * options_.scale, size * options_.scale, size * options_.scale},
              colour_of(ink), opacity);
}

void PngSurface::letters(Point baseline, std::string_view words, const Lettering& lettering) {
  const double size = lettering.size * options_.scale;
  const double width = text_width(words, size);
  if (lettering.anchor == Anchor::middle) baseline.x -= width / 2;
  if (lettering.anchor == Anchor::end) baseline.x -= width;
  const double above = size, below = size * 0.4;
  image_.stroke(text_strokes(words, baseline, size), size * (lettering.bold ? kBoldPen : kPen),
                colour_of(lettering.ink), 1.0,
                {baseline.x - size, baseline.y - above, width + 2 * size, above + below});
}

}  // namespace megalith::observe
