#include "observe/draw/text_table.h"

#include <algorithm>

namespace megalith::observe {

namespace {
std::vector<size_t> column_widths(const TextRow& header, const std::vector<TextRow>& rows, size_t header_padding) {
  std::vector<size_t> widths;
  for (const std::string& title : header) widths.push_back(width_of(title) + header_padding);
  for (const TextRow& row : rows) {
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], width_of(row[i]));
  }
  return widths;
}

std::string padding(const std::string& text, size_t width) {
  return std::string(width - std::min(width, width_of(text)), ' ');
}

std::string rule(const std::vector<size_t>& widths, char line) {
  std::string text = "+";
  for (const size_t width : widths) text += std::string(width + 2, line) + "+";
  return text + "\n";
}

std::string grid_row(const TextRow& cells, const std::vector<size_t>& widths) {
  std::string text = "|";
  for (size_t i = 0; i < cells.size(); ++i) text += " " + cells[i] + padding(cells[i], widths[i]) + " |";
  return text + "\n";
}

std::string plain_row(const TextRow& cells, const std::vector<size_t>& widths) {
  std::string text = cells[0] + padding(cells[0], widths[0]);
  for (size_t i = 1; i < cells.size(); ++i) text += "  " + padding(cells[i], widths[i]) + cells[i];
  text.erase(text.find_last_not_of(' ') + 1);
  return text + "\n";
}
}  // namespace

size_t width_of(const std::string& text) {
  return static_cast<size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; }));
}

std::string grid_table(const TextRow& header, const std::vector<TextRow>& rows) {
  constexpr size_t kHeaderPadding = 2;
  const std::vector<size_t> widths = column_widths(header, rows, kHeaderPadding);
  std::string text = rule(widths, '-') + grid_row(header, widths) + rule(widths, '=');
  for (const TextRow& row : rows) text += grid_row(row, widths) + rule(widths, '-');
  return text;
}

std::string plain_table(const TextRow& header, const std::vector<TextRow>& rows) {
  const std::vector<size_t> widths = column_widths(header, rows, 0);
  std::string text = plain_row(header, widths);
  for (const TextRow& row : rows) text += plain_row(row, widths);
  return text;
}

std::string fitting_table(const TextRow& header, const std::vector<TextRow>& rows, size_t width) {
  const std::vector<size_t> widths = column_widths(header, rows, 0);
  std::string text;
  size_t next = 1;
  do {
    std::vector<size_t> columns{0};
    size_t taken = widths[0];
    while (next < header.size() && (columns.size() == 1 || width == 0 || taken + 2 + widths[next] <= width)) {
      taken += 2 + widths[next];
      columns.push_back(next++);
    }
    const auto some = [&](const TextRow& row) {
      TextRow cells;
      for (const size_t column : columns) cells.push_back(row[column]);
      return cells;
    };
    std::vector<TextRow> some_rows;
    for (const TextRow& row : rows) some_rows.push_back(some(row));
    if (!text.empty()) text += '\n';
    text += plain_table(some(header), some_rows);
  } while (next < header.size());
  return text;
}

std::string csv_line(const TextRow& cells) {
  std::string line;
  for (const std::string& cell : cells) {
    if (!line.empty() || &cell != &cells.front()) line += ',';
    if (cell.find_first_of(",\"\r\n") == std::string::npos) {
      line += cell;
      continue;
    }
    line += '"';
    for (const char c : cell) line += c == '"' ? std::string("\"\"") : std::string(1, c);
    line += '"';
  }
  return line + "\r\n";
}

}  // namespace megalith::observe
