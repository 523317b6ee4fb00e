#include "observe/draw/sparkline.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

namespace megalith::observe {

namespace {

// The dots of a braille character: by column, then from the top row down.
constexpr std::array<std::array<unsigned, 4>, 2> kDots = {{{0x01, 0x02, 0x04, 0x40}, {0x08, 0x10, 0x20, 0x80}}};
constexpr unsigned kBraille = 0x2800;

std::string utf8_of_braille(unsigned dots) {
  const unsigned code = kBraille + dots;
  return {static_cast<char>(0xe0 | (code >> 12)), static_cast<char>(0x80 | ((code >> 6) & 0x3f)),
          static_cast<char>(0x80 | (code & 0x3f))};
}

}  // namespace

std::vector<double> means_by_column(const std::vector<Point>& points, size_t columns) {
  columns = std::min(columns, points.size());
  std::vector<double> means;
  for (size_t column = 0; column < columns; ++column) {
    double sum = 0.0;
    int64_t count = 0;
    for (size_t i = points.size() * column / columns; i < points.size() * (column + 1) / columns; ++i) {
      if (!std::isfinite(points[i].y)) continue;
      sum += points[i].y;
      ++count;
    }
    means.push_back(count > 0 ? sum / static_cast<double>(count) : std::numeric_limits<double>::quiet_NaN());
  }
  return means;
}

std::string sparkline(const std::vector<double>& values) {
  constexpr const char* kBlocks[] = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
  double low = std::numeric_limits<double>::infinity();
  double high = -low;
  for (const double value : values) {
    if (!std::isfinite(value)) continue;
    low = std::min(low, value);
    high = std::max(high, value);
  }
  std::string line;
  for (const double value : values) {
    if (!std::isfinite(value)) {
      line += ' ';
      continue;
    }
    const double share = high > low ? (value - low) / (high - low) : 0.5;
    line += kBlocks[std::min<size_t>(7, static_cast<size_t>(share * 8.0))];
  }
  return line;
}

std::vector<std::string> dotted_curve(const std::vector<double>& values, size_t rows, double low, double high) {
  const auto height = static_cast<int>(rows) * 4;
  std::vector<std::vector<unsigned>> cells(rows, std::vector<unsigned>((values.size() + 1) / 2, 0));
  int last = -1;  // none
  for (size_t i = 0; i < values.size(); ++i) {
    if (!std::isfinite(values[i])) {
      last = -1;
      continue;
    }
    const double share = high > low ? std::clamp((high - values[i]) / (high - low), 0.0, 1.0) : 0.5;
    const int dot = static_cast<int>(std::lround(share * (height - 1)));
    // Down or up to where the curve was, so that it does not fall apart where it is steep.
    const int from = last >= 0 && last < dot ? last + 1 : dot;
    const int to = last > dot ? last - 1 : dot;
    for (int y = from; y <= to; ++y)
      cells[static_cast<size_t>(y / 4)][i / 2] |= kDots[i % 2][static_cast<size_t>(y % 4)];
    last = dot;
  }
  std::vector<std::string> lines;
  for (const std::vector<unsigned>& row : cells) {
    lines.emplace_back();
    for (const unsigned dots : row) lines.back() += dots == 0 ? " " : utf8_of_braille(dots);
  }
  return lines;
}

}  // namespace megalith::observe
