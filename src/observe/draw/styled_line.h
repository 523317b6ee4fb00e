#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace megalith::observe {

// Codes of ANSI terminals.
namespace style {
constexpr std::string_view kPlain = "";
constexpr std::string_view kBold = "1";
constexpr std::string_view kDim = "2";
constexpr std::string_view kRed = "1;31";
constexpr std::string_view kGreen = "32";
constexpr std::string_view kYellow = "33";
constexpr std::string_view kBlue = "36";
}  // namespace style

// Characters of UTF-8 text; each takes one column of a terminal here.
int64_t columns_of(std::string_view text);

// The first `columns` characters of UTF-8 text, none of them broken.
std::string_view truncate_utf8(std::string_view text, int64_t columns);

// A line of a terminal, put together from words in different styles.
class StyledLine {
 public:
  StyledLine& add(std::string text, std::string_view style = style::kPlain);
  // Blanks up to a column.
  StyledLine& pad_to(int64_t column);
  int64_t columns() const { return columns_; }

  // In `width` columns: what has no room is cut off between words, and dots stand for it.
  std::string to_string(int64_t width, bool colour) const;

 private:
  std::vector<std::pair<std::string, std::string_view>> parts_;
  int64_t columns_ = 0;
};

}  // namespace megalith::observe
