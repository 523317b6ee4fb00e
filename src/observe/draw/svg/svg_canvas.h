#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "observe/draw/surface.h"

namespace megalith::observe {

// Of an SvgCanvas: these follow the page, light or dark.
constexpr std::string_view kPaper = "var(--paper)";
constexpr std::string_view kIdle = "var(--idle)";
constexpr std::string_view kLine = "var(--line)";

// A picture in a file of its own, readable on light and on dark pages. Shapes come in any CSS colour that dark text can
// be read on.
class SvgCanvas {
 public:
  using Anchor = observe::Anchor;

  SvgCanvas(double width, double height) : width_(width), height_(height) {}

  // `hint` shows when a mouse points at it.
  void rectangle(const Rectangle& box, std::string_view fill, std::string_view hint = "");
  void polygon(const std::vector<Point>& corners, std::string_view fill);
  void line(const Point& from, const Point& to);
  void text(const Point& baseline, std::string_view words, Anchor anchor = Anchor::start);
  void title(const Point& baseline, std::string_view words);
  // Small and dark, in the middle of a box of the canvas; nothing where it does not fit.
  void label(const Rectangle& box, std::string_view words);

  // Pixels that words of text() take, roughly.
  static double width_of(std::string_view words) { return 7.2 * static_cast<double>(words.size()); }

  std::string to_string() const;

 private:
  double width_;
  double height_;
  std::string body_;
};

}  // namespace megalith::observe
