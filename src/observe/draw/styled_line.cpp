#include "observe/draw/styled_line.h"

#include <fmt/format.h>

#include <algorithm>

namespace megalith::observe {

int64_t columns_of(std::string_view text) {
  return std::count_if(text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; });
}

std::string_view truncate_utf8(std::string_view text, int64_t columns) {
  for (size_t i = 0; i < text.size(); ++i) {
    const bool starts_character = (static_cast<unsigned char>(text[i]) & 0xc0) != 0x80;
    if (starts_character && columns-- <= 0) return text.substr(0, i);
  }
  return text;
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
  const bool cut = columns_ > width;
  if (cut) --width;  // for the dots
  std::string line;
  for (const auto& [text, style] : parts_) {
    std::string_view shown = truncate_utf8(text, width);
    const bool ends_here = shown.size() < text.size();
    const size_t blank = shown.find_last_of(' ');
    const bool in_word = ends_here && text[shown.size()] != ' ' && (blank != std::string_view::npos || !line.empty());
    if (in_word) shown = shown.substr(0, blank + 1);
    width = ends_here ? 0 : width - columns_of(shown);
    if (shown.empty()) continue;
    line += colour && !style.empty() ? fmt::format("\x1b[{}m{}\x1b[0m", style, shown) : std::string(shown);
  }
  if (cut) line += "…";
  if (!colour) line.erase(line.find_last_not_of(' ') + 1);
  return line;
}

}  // namespace megalith::observe
