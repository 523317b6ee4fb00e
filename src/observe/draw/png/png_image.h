#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "observe/draw/surface.h"

namespace megalith::observe {

using Segment = std::pair<Point, Point>;

// Pixels, painted with soft edges. Coordinates are pixels from the upper left corner; colours are 0xRRGGBB.
class PngImage {
 public:
  PngImage(int width, int height, uint32_t paper);

  int width() const { return width_; }
  int height() const { return height_; }
  uint32_t at(int x, int y) const;

  // Lines with round ends, as one shape: where they cross, nothing is painted twice. Only within `clip`.
  void stroke(const std::vector<Segment>& segments, double width, uint32_t colour, double opacity,
              const Rectangle& clip);
  void fill(const Rectangle& box, uint32_t colour, double opacity);

  Rectangle bounds() const { return {0, 0, static_cast<double>(width_), static_cast<double>(height_)}; }

  // The bytes of a PNG file.
  std::string encode() const;

 private:
  void blend(int x, int y, uint32_t colour, double coverage);

  int width_;
  int height_;
  std::vector<uint8_t> rgb_;
};

}  // namespace megalith::observe
