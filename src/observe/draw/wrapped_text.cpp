#include "observe/draw/wrapped_text.h"

#include <algorithm>

#include "observe/draw/styled_line.h"

namespace megalith::observe {

namespace {

void add_wrapped(std::string& out, std::string_view line, int64_t columns) {
  constexpr size_t kBlanks = 2;
  const size_t words = std::min(line.find_first_not_of(' '), line.size());
  const size_t gap = line.rfind("  ");
  const bool is_table = gap != std::string_view::npos && gap > words;
  const size_t begin = is_table ? gap + kBlanks : words;
  std::string row(line.substr(0, begin));
  bool has_words = false;
  for (size_t at = begin; at < line.size();) {
    const size_t end = std::min(line.find(' ', at), line.size());
    const std::string_view word = line.substr(at, end - at);
    if (has_words && columns_of(row) + 1 + columns_of(word) > columns) {
      out.append(row).append("\n");
      row.assign(is_table ? begin : kBlanks, ' ');
      has_words = false;
    }
    if (has_words) row += ' ';
    row += word;
    has_words = true;
    at = end + 1;
  }
  out.append(row).append("\n");
}

}  // namespace

std::string wrap_lines(std::string_view text, int64_t columns) {
  std::string wrapped;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    add_wrapped(wrapped, text.substr(0, end), columns);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return wrapped;
}

}  // namespace megalith::observe
