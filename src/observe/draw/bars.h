#pragma once

#include <string>
#include <vector>

#include "observe/draw/surface.h"

namespace megalith::observe {

struct BarPart {
  std::string label;
  std::string ink;  // a name of palette.h
  double size = 0.0;
  std::string hint;  // shows when pointed at
};

// Parts laid end to end.
struct Bar {
  std::string label;
  std::vector<BarPart> parts;
  std::string value;  // written behind it
};

// Horizontal bars, one below the other, on one scale.
struct Bars {
  std::string name;  // of its file: "memory"
  std::string title;
  std::vector<Bar> bars;
};

Sheet sheet_of(const Bars& bars);
void draw(const Bars& bars, Surface& surface);

}  // namespace megalith::observe
