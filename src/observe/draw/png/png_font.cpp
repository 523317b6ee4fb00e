#include "observe/draw/png/png_font.h"

#include <algorithm>
#include <sstream>

namespace megalith::observe {

namespace {

// A glyph on a grid where the baseline is 0, small letters are 10 high and capitals 14. "L x y x y ..." are straight
// lines, "C" is a smooth curve through its points and "O" a closed one.
struct Glyph {
  char letter;
  double width;
  std::string_view path;
};

constexpr double kCapital = 14.0;
constexpr double kCapitalShare = 0.72;  // of the size
constexpr double kBetween = 3.0;        // letters

constexpr Glyph kGlyphs[] = {
    {' ', 3, ""},
    {'!', 0, "L 0 14 0 4.5 L 0 0.2 0 0"},
    {'"', 3.4, "L 0 14 0 10 L 3.4 14 3.4 10"},
    {'#', 9, "L 2 0 4 14 L 6 0 8 14 L 0.4 9.3 9 9.3 L 0 4.7 8.6 4.7"},
    {'$', 8.6,
     "C 8 11 6.6 12.3 4.3 12.6 1.7 12 0.7 10 1.8 8 4.4 7 7.2 6 8.4 3.8 7 1.8 4.3 1.2 1.6 1.7 0.2 3.4 L 4.3 14.6 4.3 "
     "-0.8"},
    {'%', 12, "L 10.6 14 1.4 0 O 2.5 13.8 0.2 10.9 2.5 8 4.8 10.9 O 9.5 6 7.2 3.1 9.5 0.2 11.8 3.1"},
    {'&', 10, "C 10 0 7 3 3 8.4 1.9 11 2.6 13.2 4.3 14 6 13.2 6.4 11.2 5 8.8 2 6.8 0.2 4 1.2 1 4 0 7 1.4 9.4 6.4"},
    {'\'', 0, "L 0 14 0 10"},
    {'(', 3.2, "C 3.2 15 1 11.6 0.2 7 0.2 5 1 0.4 3.2 -3"},
    {')', 3.2, "C 0 15 2.2 11.6 3 7 3 5 2.2 0.4 0 -3"},
    {'*', 6, "L 3 14 3 8 L 0.4 12.5 5.6 9.5 L 5.6 12.5 0.4 9.5"},
    {'+', 8, "L 4 9.5 4 1.5 L 0 5.5 8 5.5"},
    {',', 1, "L 1 0.6 0 -2.6"},
    {'-', 4.5, "L 0 5.5 4.5 5.5"},
    {'.', 0.4, "L 0.2 0.2 0.2 0"},
    {'/', 6, "L 0 -1.5 6 15"},
    {'0', 8.4, "O 4.2 14 1.4 12.5 0.2 9.3 0.2 4.7 1.4 1.5 4.2 0 7 1.5 8.2 4.7 8.2 9.3 7 12.5"},
    {'1', 8.4, "L 1.4 11.3 4.8 14 4.8 0"},
    {'2', 8.4, "C 0.4 10.8 1.6 13.3 4.2 14 6.9 13 7.8 10.4 6.9 7.8 4 4.4 0.2 0 L 0.2 0 8.2 0"},
    {'3', 8.4,
     "C 0.5 11.6 1.8 13.4 4.1 14 6.7 13 7.5 10.7 6.5 8.4 3.4 7.4 C 3.4 7.4 7 6.5 8.1 3.8 6.9 1 4 0 1.6 0.6 0.2 2.6"},
    {'4', 8.4, "L 6.2 0 6.2 14 0 4.2 8.4 4.2"},
    {'5', 8.4, "L 7.3 14 1.4 14 0.8 7.6 C 0.8 7.6 2.4 8.8 4.4 9 7 7.8 8.1 4.6 7 1.3 4 0 1.6 0.5 0.2 2.3"},
    {'6', 8.4,
     "C 7.2 12.6 5.8 13.8 4.4 14 1.8 12.4 0.4 8.6 0.2 4.6 O 4.3 8.8 1.5 7.6 0.2 4.5 1.4 1.2 4.3 0 7 1.2 8.2 4.4 7 7.6"},
    {'7', 8.4, "L 0.2 14 8.2 14 3 0"},
    {'8', 8.4,
     "O 4.2 14 1.8 13 0.8 10.7 1.8 8.4 4.2 7.5 6.6 8.4 7.6 10.7 6.6 13 O 4.2 7.5 1.3 6.4 0.2 3.7 1.3 1 4.2 0 7.1 1 8.2 "
     "3.7 7.1 6.4"},
    {'9', 8.4,
     "C 1.2 1.4 2.6 0.2 4 0 6.6 1.6 8 5.4 8.2 9.4 O 4.1 5.2 6.9 6.4 8.2 9.5 7 12.8 4.1 14 1.4 12.8 0.2 9.6 1.4 6.4"},
    {':', 0.4, "L 0.2 8.8 0.2 8.6 L 0.2 0.2 0.2 0"},
    {';', 1, "L 1 8.8 1 8.6 L 1 0.6 0 -2.6"},
    {'<', 8, "L 8 9.5 0 5.5 8 1.5"},
    {'=', 8, "L 0 7.5 8 7.5 L 0 3.5 8 3.5"},
    {'>', 8, "L 0 9.5 8 5.5 0 1.5"},
    {'?', 7, "C 0.2 11.2 1.2 13.3 3.6 14 6.1 13.2 7 11 6 8.6 3.6 6.6 3.4 4.2 L 3.4 0.2 3.4 0"},
    {'@', 13,
     "O 6.5 9.5 4.2 8.2 3.6 5.5 4.4 3 6.5 2.2 8.6 3.4 9.2 6 8.4 8.6 C 9.2 8.6 9.2 4 10.4 2.4 12 3.6 12.8 7 11.6 11.4 "
     "7.4 13.8 2.8 12.4 0.2 7.4 0.8 2 4 -1.4 8 -1.8 10.4 -0.8"},
    {'A', 10, "L 0 0 5 14 10 0 L 1.8 5 8.2 5"},
    {'B', 9.2,
     "L 5 14 0 14 0 0 5.2 0 L 0 7.5 5 7.5 C 5 14 7.5 13.3 8.4 10.8 7.5 8.2 5 7.5 C 5 7.5 8.2 6.6 9.2 3.8 8.2 0.9 5.2 "
     "0"},
    {'C', 9.5, "C 9.5 11.5 7.8 13.5 5.3 14 2.2 12.8 0.3 9.5 0.3 4.5 2.2 1.2 5.3 0 7.8 0.5 9.5 2.5"},
    {'D', 9.4, "L 4 14 0 14 0 0 4 0 C 4 14 7.6 12.8 9.3 9.5 9.3 4.5 7.6 1.2 4 0"},
    {'E', 8, "L 8 14 0 14 0 0 8 0 L 0 7.4 7 7.4"},
    {'F', 8, "L 8 14 0 14 0 0 L 0 7.4 7 7.4"},
    {'G', 9.9,
     "C 9.5 11.5 7.8 13.5 5.3 14 2.2 12.8 0.3 9.5 0.3 4.5 2.2 1.2 5.3 0 8 0.6 9.8 2.5 L 9.8 2.5 9.8 6.6 6 6.6"},
    {'H', 9, "L 0 0 0 14 L 9 0 9 14 L 0 7.4 9 7.4"},
    {'I', 0, "L 0 0 0 14"},
    {'J', 5.5, "L 5.5 14 5.5 3.6 C 5.5 3.6 4.8 1 2.9 0 0.9 0.8 0 2.5"},
    {'K', 9, "L 0 0 0 14 L 8.5 14 0 5.5 L 3 8.4 9 0"},
    {'L', 7.5, "L 0 14 0 0 7.5 0"},
    {'M', 11, "L 0 0 0 14 5.5 4 11 14 11 0"},
    {'N', 9, "L 0 0 0 14 9 0 9 14"},
    {'O', 10.5, "O 5.25 14 2 12.6 0.2 9.5 0.2 4.5 2 1.4 5.25 0 8.5 1.4 10.3 4.5 10.3 9.5 8.5 12.6"},
    {'P', 9, "L 0 0 0 14 5 14 L 0 6.6 5 6.6 C 5 14 8 13.1 9 10.3 8 7.5 5 6.6"},
    {'Q', 10.5, "O 5.25 14 2 12.6 0.2 9.5 0.2 4.5 2 1.4 5.25 0 8.5 1.4 10.3 4.5 10.3 9.5 8.5 12.6 L 6.5 3.5 10 -1"},
    {'R', 9.2, "L 0 0 0 14 5 14 L 0 6.6 5 6.6 9.2 0 C 5 14 8 13.1 9 10.3 8 7.5 5 6.6"},
    {'S', 9, "C 8.6 11.8 7 13.6 4.5 14 1.8 13.2 0.6 10.8 1.8 8.5 4.7 7.3 7.8 6 9 3.5 7.6 0.9 4.5 0 1.7 0.6 0.2 2.6"},
    {'T', 9, "L 0 14 9 14 L 4.5 14 4.5 0"},
    {'U', 9, "L 0 14 0 5 C 0 5 1 1.5 4.5 0 8 1.5 9 5 L 9 5 9 14"},
    {'V', 10, "L 0 14 5 0 10 14"},
    {'W', 14, "L 0 14 3.5 0 7 12 10.5 0 14 14"},
    {'X', 9, "L 0 0 9 14 L 0 14 9 0"},
    {'Y', 9.4, "L 0 14 4.7 6.5 9.4 14 L 4.7 6.5 4.7 0"},
    {'Z', 9.3, "L 0.3 14 9 14 0 0 9.3 0"},
    {'[', 3, "L 3 15 0 15 0 -3 3 -3"},
    {'\\', 6, "L 0 15 6 -1.5"},
    {']', 3, "L 0 15 3 15 3 -3 0 -3"},
    {'^', 7, "L 0 9 3.5 14 7 9"},
    {'_', 8, "L 0 -2.5 8 -2.5"},
    {'`', 2.5, "L 0 14 2.5 11.5"},
    {'a', 7.6, "O 3.8 10 1.2 8.7 0 5 1.2 1.3 3.8 0 6.4 1.3 7.6 5 6.4 8.7 L 7.6 10 7.6 0"},
    {'b', 7.6, "O 3.8 10 1.2 8.7 0 5 1.2 1.3 3.8 0 6.4 1.3 7.6 5 6.4 8.7 L 0 14 0 0"},
    {'c', 7, "C 7 8.2 5.8 9.6 3.9 10 1.3 8.7 0 5 1.3 1.3 3.9 0 5.8 0.4 7 1.8"},
    {'d', 7.6, "O 3.8 10 1.2 8.7 0 5 1.2 1.3 3.8 0 6.4 1.3 7.6 5 6.4 8.7 L 7.6 14 7.6 0"},
    {'e', 7.4, "L 0.1 5.3 7.4 5.3 C 7.4 5.3 6.4 8.7 3.8 10 1.2 8.7 0 5 1.2 1.3 3.9 0 5.9 0.4 7.1 1.9"},
    {'f', 5, "C 5 13.8 3.5 13.9 2.2 13 1.8 11 L 1.8 11 1.8 0 L 0 9.7 4.6 9.7"},
    {'g', 7.6,
     "O 3.8 10 1.2 8.7 0 5 1.2 1.3 3.8 0 6.4 1.3 7.6 5 6.4 8.7 L 7.6 10 7.6 -0.5 C 7.6 -0.5 6.7 -3.2 3.9 -4.2 0.8 "
     "-3.2"},
    {'h', 6.8, "L 0 14 0 0 C 0 6.2 1.2 9 3.7 10 6 9 6.8 6.2 L 6.8 6.2 6.8 0"},
    {'i', 0.4, "L 0.2 10 0.2 0 L 0.2 13.9 0.2 13.7"},
    {'j', 2.4, "L 2.2 10 2.2 -1.5 C 2.2 -1.5 1.6 -3.6 -0.6 -4 L 2.2 13.9 2.2 13.7"},
    {'k', 7.2, "L 0 14 0 0 L 6.8 10 0 4 L 2.6 6.3 7.2 0"},
    {'l', 0.4, "L 0.2 14 0.2 0"},
    {'m', 11.6,
     "L 0 10 0 0 C 0 6.2 1 9 3.2 10 5.2 9 5.8 6.2 L 5.8 6.2 5.8 0 C 5.8 6.2 6.8 9 9 10 11 9 11.6 6.2 L 11.6 6.2 11.6 "
     "0"},
    {'n', 6.8, "L 0 10 0 0 C 0 6.2 1.2 9 3.7 10 6 9 6.8 6.2 L 6.8 6.2 6.8 0"},
    {'o', 7.8, "O 3.9 10 1.2 8.7 0 5 1.2 1.3 3.9 0 6.6 1.3 7.8 5 6.6 8.7"},
    {'p', 7.6, "O 3.8 10 1.2 8.7 0 5 1.2 1.3 3.8 0 6.4 1.3 7.6 5 6.4 8.7 L 0 10 0 -4"},
    {'q', 7.6, "O 3.8 10 1.2 8.7 0 5 1.2 1.3 3.8 0 6.4 1.3 7.6 5 6.4 8.7 L 7.6 10 7.6 -4"},
    {'r', 4.4, "L 0 10 0 0 C 0 6 0.9 8.8 2.4 9.9 4.4 10"},
    {'s', 6.7, "C 6.3 8.3 5.2 9.7 3.3 10 1.2 9.4 0.5 7.6 1.4 6 3.5 5.1 5.8 4.1 6.7 2.5 5.7 0.6 3.3 0 1.2 0.4 0.1 1.9"},
    {'t', 5.2, "L 1.8 13 1.8 2.8 C 1.8 2.8 2.4 0.6 3.8 0 5.2 0.3 L 0 9.7 4.8 9.7"},
    {'u', 6.8, "L 0 10 0 3.8 C 0 3.8 0.8 1 3.1 0 5.6 1 6.8 3.8 L 6.8 10 6.8 0"},
    {'v', 7.6, "L 0 10 3.8 0 7.6 10"},
    {'w', 11.2, "L 0 10 2.8 0 5.6 9 8.4 0 11.2 10"},
    {'x', 7, "L 0 0 7 10 L 0 10 7 0"},
    {'y', 7.6, "L 0 10 3.8 0 L 7.6 10 3.8 0 2.4 -3.2 0.6 -4"},
    {'z', 7, "L 0.3 10 6.8 10 0 0 7 0"},
    {'{', 4, "C 4 15 2.4 14 2.2 11 1.8 7.4 0 6 1.8 4.6 2.2 1 2.4 -2 4 -3"},
    {'|', 0, "L 0 15 0 -3"},
    {'}', 4, "C 0 15 1.6 14 1.8 11 2.2 7.4 4 6 2.2 4.6 1.8 1 1.6 -2 0 -3"},
    {'~', 8, "C 0 4.6 1.2 6.4 2.6 6.6 4 5.6 5.4 4.6 6.8 4.8 8 6.6"},
};
constexpr Glyph kUnknown{'?', 7, "L 0 0 7 0 7 12 0 12 0 0"};

const Glyph& glyph_of(char letter) {
  const auto found =
      std::find_if(std::begin(kGlyphs), std::end(kGlyphs), [&](const Glyph& g) { return g.letter == letter; });
  return found == std::end(kGlyphs) ? kUnknown : *found;
}

// A Catmull-Rom spline through the points.
std::vector<Point> curved(const std::vector<Point>& points, bool closed) {
  constexpr int kPieces = 5;
  const auto count = static_cast<std::ptrdiff_t>(points.size());
  const auto at = [&](std::ptrdiff_t i) {
    return points[static_cast<size_t>(closed ? (i + count) % count : std::clamp<std::ptrdiff_t>(i, 0, count - 1))];
  };
  const auto blend = [](double a, double b, double c, double d, double t) {
    return 0.5 * (2 * b + (c - a) * t + (2 * a - 5 * b + 4 * c - d) * t * t + (3 * b - a - 3 * c + d) * t * t * t);
  };
  std::vector<Point> path{points.front()};
  for (std::ptrdiff_t i = 0; i < (closed ? count : count - 1); ++i) {
    const Point a = at(i - 1), b = at(i), c = at(i + 1), d = at(i + 2);
    for (int piece = 1; piece <= kPieces; ++piece) {
      const double t = static_cast<double>(piece) / kPieces;
      path.push_back({blend(a.x, b.x, c.x, d.x, t), blend(a.y, b.y, c.y, d.y, t)});
    }
  }
  return path;
}

std::vector<std::vector<Point>> paths_of(const Glyph& glyph) {
  std::vector<std::vector<Point>> paths;
  std::istringstream words{std::string(glyph.path)};
  for (char command = 0; words >> command;) {
    std::vector<Point> points;
    for (Point point; words >> point.x >> point.y;) points.push_back(point);
    words.clear();  // the next command ended the numbers
    paths.push_back(command == 'L' ? points : curved(points, command == 'O'));
  }
  return paths;
}

// Bytes that continue a UTF-8 character.
bool continues(char byte) {
  return (static_cast<unsigned char>(byte) & 0xc0) == 0x80;
}

double unit_of(double size) {
  return size * kCapitalShare / kCapital;
}

}  // namespace

double text_width(std::string_view words, double size) {
  double width = -kBetween;
  for (const char letter : words) width += continues(letter) ? 0.0 : glyph_of(letter).width + kBetween;
  return std::max(0.0, width) * unit_of(size);
}

std::vector<Segment> text_strokes(std::string_view words, const Point& baseline, double size) {
  const double unit = unit_of(size);
  std::vector<Segment> segments;
  double x = baseline.x;
  for (const char letter : words) {
    if (continues(letter)) continue;
    const Glyph& glyph = glyph_of(letter);
    for (const std::vector<Point>& path : paths_of(glyph)) {
      for (size_t i = 1; i < path.size(); ++i) {
        segments.push_back({{x + path[i - 1].x * unit, baseline.y - path[i - 1].y * unit},
                            {x + path[i].x * unit, baseline.y - path[i].y * unit}});
      }
    }
    x += (glyph.width + kBetween) * unit;
  }
  return segments;
}

}  // namespace megalith::observe
