#include "observe/styled_line.h"

#include <fmt/format.h>

#include <algorithm>

#include "observe/console.h"

namespace megalith::observe {

int64_t columns_of(std::string_view text) {
  return std::count_if(text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; });
}

StyledLine& StyledLine::add(std::string text, std::string_view style) {
  columns_ += columns_of(text);
  parts_.emplace_back(std::move(text), style);
  return *this;
}

StyledLine& StyledLine::pad_to(int64_t column) {
  if (columns_ < column) add(std::string(static_cast<size_t>(column - columns_), ' '));
  return *this;
}

std::string StyledLine::to_string(int64_t width, bool colour) const {
  std::string line;
  for (const auto& [text, style] : parts_) {
    const std::string_view shown = truncate_utf8(text, width);
    width -= columns_of(shown);
    if (shown.empty()) continue;
    line += colour && !style.empty() ? fmt::format("\x1b[{}m{}\x1b[0m", style, shown) : std::string(shown);
  }
  if (!colour) line.erase(line.find_last_not_of(' ') + 1);
  return line;
}

}  // namespace megalith::observe
