#pragma once

#include <string_view>
#include <vector>

namespace megalith::observe {

struct Point {
  double x = 0.0;
  double y = 0.0;  // a point that is not finite breaks the line
};

struct Rectangle {
  double x = 0.0;
  double y = 0.0;
  double width = 0.0;
  double height = 0.0;
};

// The area of a picture that data fills, and the pixels that words take around it. Its width is the reader's.
struct Sheet {
  double left = 56.0;
  double right = 14.0;
  double top = 12.0;
  double bottom = 40.0;
  double height = 236.0;  // of the area
};

// A position: a share of the area, from its upper left corner, and pixels from there. So a picture fits a phone and a
// wide screen with letters of the same size.
struct Position {
  double across = 0.0;
  double down = 0.0;
  double dx = 0.0;
  double dy = 0.0;
};

enum class Anchor { start, middle, end };

// As SVG calls it.
constexpr std::string_view name_of(Anchor anchor) {
  switch (anchor) {
    case Anchor::middle:
      return "middle";
    case Anchor::end:
      return "end";
    default:
      return "start";
  }
}

struct Stroke {
  std::string_view ink;  // a name of palette.h
  double width = 1.0;
  double opacity = 1.0;
  bool dashed = false;
};

struct Lettering {
  std::string_view ink = "muted";
  Anchor anchor = Anchor::start;
  double size = 12.0;
  bool bold = false;
};

// Where a picture is drawn: as elements of an <svg> (svg_surface.h) or as pixels (png_surface.h).
class Surface {
 public:
  virtual ~Surface() = default;

  virtual void line(const Position& from, const Position& to, const Stroke& stroke) = 0;
  // Points as shares of the area; what lies outside the area is not shown.
  virtual void curve(const std::vector<Point>& shares, const Stroke& stroke) = 0;
  // Boxes as shares of the area.
  virtual void boxes(const std::vector<Rectangle>& shares, std::string_view ink, double opacity) = 0;
  // A box from `corner` that is `share` of the area wide and `height` pixels high; `hint` shows when pointed at.
  virtual void bar(const Position& corner, double share, double height, std::string_view ink,
                   std::string_view hint) = 0;
  virtual void dot(const Position& centre, double radius, std::string_view ink) = 0;
  virtual void text(const Position& baseline, std::string_view words, const Lettering& lettering) = 0;
};

}  // namespace megalith::observe
