#pragma once

#include <string>
#include <vector>

#include "observe/draw/surface.h"

namespace megalith::observe {

// Means of the points over `columns` equal stretches; fewer columns where there are fewer points. Points that are not
// finite are left out; a stretch without any is NaN.
std::vector<double> means_by_column(const std::vector<Point>& points, size_t columns);

// One line of blocks from ▁ to █, as wide as there are values; a blank where one is not finite.
std::string sparkline(const std::vector<double>& values);

// A curve of dots, two to a column and four to a row, from the top row down. As wide as half the values. The range goes
// from `low` to `high`; values outside it lie on the edge.
std::vector<std::string> dotted_curve(const std::vector<double>& values, size_t rows, double low, double high);

}  // namespace megalith::observe
