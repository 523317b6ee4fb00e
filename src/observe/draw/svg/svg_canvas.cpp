#include "observe/draw/svg/svg_canvas.h"

#include <fmt/format.h>

#include "observe/report/html.h"

namespace megalith::observe {

namespace {

constexpr double kLabelSize = 11.0;
constexpr double kLabelLetter = 6.6;

constexpr std::string_view kStyle = R"(<style>
svg{--paper:#ffffff;--ink:#1f2328;--idle:#e6e8eb;--line:#c4c9d0;font:13px system-ui,sans-serif}
@media (prefers-color-scheme:dark){svg{--paper:#0d1117;--ink:#e6edf3;--idle:#262c36;--line:#3d444d}}
text{fill:var(--ink)}
.title{font-weight:600;font-size:15px}
.label{fill:#14181d;font-size:11px;text-anchor:middle}
</style>
)";

}  // namespace

void SvgCanvas::rectangle(const Rectangle& box, std::string_view fill, std::string_view hint) {
  body_ += fmt::format(R"(<rect x="{:.2f}" y="{:.2f}" width="{:.2f}" height="{:.2f}" fill="{}")", box.x, box.y,
                       box.width, box.height, fill);
  body_ += hint.empty() ? "/>\n" : fmt::format("><title>{}</title></rect>\n", escape_html(hint));
}

void SvgCanvas::polygon(const std::vector<Point>& corners, std::string_view fill) {
  std::string points;
  for (const Point& corner : corners) points += fmt::format("{:.2f},{:.2f} ", corner.x, corner.y);
  body_ += fmt::format("<polygon points=\"{}\" fill=\"{}\"/>\n", points, fill);
}

void SvgCanvas::line(const Point& from, const Point& to) {
  body_ += fmt::format("<line x1=\"{:.2f}\" y1=\"{:.2f}\" x2=\"{:.2f}\" y2=\"{:.2f}\" stroke=\"{}\"/>\n", from.x,
                       from.y, to.x, to.y, kLine);
}

void SvgCanvas::text(const Point& baseline, std::string_view words, Anchor anchor) {
  body_ += fmt::format("<text x=\"{:.2f}\" y=\"{:.2f}\" text-anchor=\"{}\">{}</text>\n", baseline.x, baseline.y,
                       name_of(anchor), escape_html(words));
}

void SvgCanvas::title(const Point& baseline, std::string_view words) {
  body_ += fmt::format("<text class=\"title\" x=\"{:.2f}\" y=\"{:.2f}\">{}</text>\n", baseline.x, baseline.y,
                       escape_html(words));
}

void SvgCanvas::label(const Rectangle& box, std::string_view words) {
  if (static_cast<double>(words.size()) * kLabelLetter > box.width) return;
  body_ += fmt::format("<text class=\"label\" x=\"{:.2f}\" y=\"{:.2f}\">{}</text>\n", box.x + box.width / 2,
                       box.y + box.height / 2 + kLabelSize * 0.36, escape_html(words));
}

std::string SvgCanvas::to_string() const {
  const std::string opening = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0:.0f}\" height=\"{1:.0f}\" viewBox=\"0 0 {0:.0f} "
      "{1:.0f}\">\n",
      width_, height_);
  const std::string paper = fmt::format("<rect width=\"100%\" height=\"100%\" fill=\"{}\"/>\n", kPaper);
  return opening + std::string(kStyle) + paper + body_ + "</svg>\n";
}

}  // namespace megalith::observe
