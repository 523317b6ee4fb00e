#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "observe/draw/scale.h"
#include "observe/draw/surface.h"

namespace megalith::observe {

enum class Mark {
  line,
  faint,    // a noisy line behind the one that is read
  dots,     // joined by a line
  columns,  // boxes of Plot::column_width to the right of x
  stacked,  // columns that stand on those of the series before
};

struct Series {
  std::string label;
  std::string ink;            // a name of palette.h
  std::vector<Point> points;  // by rising x
  Mark mark = Mark::line;
};

// Something that happened at x: a dashed line from top to bottom.
struct Moment {
  double x = 0.0;
  std::string label;
};

struct Plot {
  std::string name;  // of its file: "loss"
  std::string title;
  std::string x_label;
  std::string y_label;
  std::vector<Series> series;
  std::vector<Moment> moments;
  bool from_zero = false;    // for quantities whose size matters, not only their change
  bool logarithmic = false;  // the y axis
  bool offers_log = false;   // a reader may want a logarithmic y axis
  double column_width = 1.0;
  bool shows_all = false;  // no value is left out as extreme: each was meant
  bool wide = false;       // takes the whole width of a page
};

// What a plot shows of its data: all of x; of y all but a few extreme values where there are many.
struct Axes {
  Scale x;
  Scale y;
  int64_t hidden = 0;  // points above or below
};
Axes axes_of(const Plot& plot);

Sheet sheet_of(const Plot& plot);
void draw(const Plot& plot, const Axes& axes, Surface& surface);

}  // namespace megalith::observe
