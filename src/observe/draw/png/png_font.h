#pragma once

#include <string_view>
#include <vector>

#include "observe/draw/png/png_image.h"

namespace megalith::observe {

// Letters as strokes of a pen, so that a plot can be lettered without a font file. `size` is that of CSS, in pixels.
double text_width(std::string_view words, double size);

// Lines along which the pen moves, with the first letter at `baseline`. ASCII; other characters are empty boxes.
std::vector<Segment> text_strokes(std::string_view words, const Point& baseline, double size);

}  // namespace megalith::observe
