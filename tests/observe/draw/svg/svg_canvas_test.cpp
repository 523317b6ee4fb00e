#include "observe/draw/svg/svg_canvas.h"

#include <gtest/gtest.h>

namespace megalith::observe {
namespace {

bool contains(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

TEST(SvgCanvas, IsOneElementThatKnowsItsSizeAndFollowsThePage) {
  const std::string svg = SvgCanvas(300, 200).to_string();
  EXPECT_TRUE(svg.starts_with("<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"300\" height=\"200\""));
  EXPECT_TRUE(svg.ends_with("</svg>\n"));
  EXPECT_TRUE(contains(svg, "prefers-color-scheme:dark"));
}

TEST(SvgCanvas, EscapesWords) {
  SvgCanvas canvas(300, 200);
  canvas.text({10, 10}, "a < b");
  canvas.rectangle({0, 0, 5, 5}, kIdle, "\"idle\" & more");
  EXPECT_TRUE(contains(canvas.to_string(), ">a &lt; b</text>"));
  EXPECT_TRUE(contains(canvas.to_string(), "<title>&quot;idle&quot; &amp; more</title>"));
}

TEST(SvgCanvas, LeavesOutLabelsThatDoNotFit) {
  SvgCanvas canvas(300, 200);
  canvas.label({0, 0, 8, 20}, "7");
  canvas.label({0, 0, 8, 20}, "1234");
  EXPECT_TRUE(contains(canvas.to_string(), ">7</text>"));
  EXPECT_FALSE(contains(canvas.to_string(), "1234"));
}

}  // namespace
}  // namespace megalith::observe
