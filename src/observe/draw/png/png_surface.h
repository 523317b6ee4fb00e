#pragma once

#include "observe/draw/png/png_image.h"

namespace megalith::observe {

// Draws a picture of a fixed size, `scale` pixels to each CSS pixel, with room above the sheet for a title and a
// legend.
class PngSurface : public Surface {
 public:
  struct Options {
    double width = 800.0;   // of the whole picture
    double heading = 60.0;  // height above the sheet
    double scale = 2.0;
    bool dark = false;
  };

  PngSurface(const Sheet& sheet, const Options& options);

  void line(const Position& from, const Position& to, const Stroke& stroke) override;
  void curve(const std::vector<Point>& shares, const Stroke& stroke) override;
  void boxes(const std::vector<Rectangle>& shares, std::string_view ink, double opacity) override;
  void bar(const Position& corner, double share, double height, std::string_view ink, std::string_view hint) override;
  void dot(const Position& centre, double radius, std::string_view ink) override;
  void text(const Position& baseline, std::string_view words, const Lettering& lettering) override;

  // In CSS pixels of the whole picture, for what stands above the sheet.
  void heading_text(const Point& baseline, std::string_view words, const Lettering& lettering);
  void heading_swatch(const Point& corner, double size, std::string_view ink, double opacity);

  const PngImage& image() const { return image_; }

 private:
  Point pixels_of(const Position& position) const;
  Rectangle pixels_of(const Rectangle& shares) const;
  uint32_t colour_of(std::string_view ink) const;
  void letters(Point baseline, std::string_view words, const Lettering& lettering);

  Options options_;
  Rectangle area_;  // in pixels of the image
  PngImage image_;
};

}  // namespace megalith::observe
