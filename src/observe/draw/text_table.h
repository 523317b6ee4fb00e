#pragma once

#include <string>
#include <vector>

namespace megalith::observe {

using TextRow = std::vector<std::string>;

// As Python's tabulate draws its "grid", columns to the left:
//   +----------+---------+
//   | Metric   | Value   |
//   +==========+=========+
//   | Loads    | 44      |
//   +----------+---------+
std::string grid_table(const TextRow& header, const std::vector<TextRow>& rows);

// Columns two spaces apart, the first to the left and the others to the right.
std::string plain_table(const TextRow& header, const std::vector<TextRow>& rows);

// The same in at most `width` columns of text: one table below the other, each with the first column. 0: no limit.
std::string fitting_table(const TextRow& header, const std::vector<TextRow>& rows, size_t width);

// A line of CSV (RFC 4180), with its end.
std::string csv_line(const TextRow& cells);

// Characters of UTF-8 text.
size_t width_of(const std::string& text);

}  // namespace megalith::observe
