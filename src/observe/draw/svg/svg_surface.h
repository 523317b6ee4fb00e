#pragma once

#include <string>

#include "observe/draw/surface.h"

namespace megalith::observe {

// Draws into an <svg> that is as wide as its container: only curves and boxes stretch with it, lines keep their width
// and letters their size. Colours are CSS variables of the page (css_variables()).
class SvgSurface : public Surface {
 public:
  void line(const Position& from, const Position& to, const Stroke& stroke) override;
  void curve(const std::vector<Point>& shares, const Stroke& stroke) override;
  void boxes(const std::vector<Rectangle>& shares, std::string_view ink, double opacity) override;
  void bar(const Position& corner, double share, double height, std::string_view ink, std::string_view hint) override;
  void dot(const Position& centre, double radius, std::string_view ink) override;
  void text(const Position& baseline, std::string_view words, const Lettering& lettering) override;

  // The elements drawn, to stand in an <svg class="area">.
  const std::string& elements() const { return body_; }

 private:
  // A path in a box of kUnits x kUnits that is stretched over the area.
  void stretched(const std::string& path, const std::string& attributes);

  std::string body_;
};

}  // namespace megalith::observe
