#include "observe/draw/png/png_plot.h"

#include "observe/draw/legend.h"
#include "observe/draw/png/png_font.h"
#include "observe/draw/png/png_surface.h"

namespace megalith::observe {

namespace {

constexpr double kMargin = 18.0, kLine = 20.0, kSwatch = 10.0, kLetters = 12.0;
constexpr double kPlotHeight = 330.0;

// Places for the entries of a legend, in as many lines as they need.
std::vector<Point> places_of(const std::vector<LegendEntry>& entries, double width, double first_line) {
  std::vector<Point> places;
  Point place{.x = kMargin, .y = first_line};
  for (const LegendEntry& entry : entries) {
    const double needed = kSwatch + 6 + text_width(entry.label, kLetters) + 18;
    if (place.x > kMargin && place.x + needed > width) place = {.x = kMargin, .y = place.y + kLine};
    places.push_back(place);
    place.x += needed;
  }
  return places;
}

template <class Picture>
PngSurface with_heading(const Picture& picture, const Sheet& sheet, const std::string& detail, bool dark) {
  PngSurface::Options options{.dark = dark};
  const std::vector<LegendEntry> entries = legend_of(picture);
  const std::vector<Point> places = places_of(entries, options.width - kMargin, 52.0);
  options.heading = places.empty() ? 42.0 : places.back().y + 10.0;
  PngSurface surface(sheet, options);
  const Lettering title{.ink = "text", .size = 16, .bold = true};
  surface.heading_text({kMargin, 28}, picture.title, title);
  surface.heading_text({kMargin + text_width(picture.title, title.size) + 12, 28}, detail, {.size = 13});
  for (size_t i = 0; i < entries.size(); ++i) {
    surface.heading_swatch({places[i].x, places[i].y - kSwatch}, kSwatch, entries[i].ink, entries[i].faint ? 0.4 : 1.0);
    surface.heading_text({places[i].x + kSwatch + 6, places[i].y - 1}, entries[i].label, {.size = kLetters});
  }
  return surface;
}

Sheet with_margin(Sheet sheet) {
  sheet.left += kMargin / 2;
  sheet.right += kMargin / 2;
  sheet.bottom += kMargin / 2;
  return sheet;
}

}  // namespace

std::string png_picture(const Plot& plot, bool dark) {
  Sheet sheet = with_margin(sheet_of(plot));
  sheet.height = kPlotHeight;
  PngSurface surface = with_heading(plot, sheet, plot.y_label, dark);
  draw(plot, axes_of(plot), surface);
  return surface.image().encode();
}

std::string png_picture(const Bars& bars, bool dark) {
  PngSurface surface = with_heading(bars, with_margin(sheet_of(bars)), "", dark);
  draw(bars, surface);
  return surface.image().encode();
}

}  // namespace megalith::observe
