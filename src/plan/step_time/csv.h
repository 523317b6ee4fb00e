#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace megalith::plan {

// A file of comma-separated values (RFC 4180) with a line of names.
struct Csv {
  struct Record {
    int64_t line = 0;  // of the file
    std::vector<std::string> cells;
  };
  std::vector<std::string> columns;
  std::vector<Record> records;

  // Index of a column; -1 where there is none.
  int64_t find(std::string_view column) const;
};

// A user error, with the line, where a record has another number of cells than the line of names, a name is there
// twice or quotes do not close. `name`: of the file, for messages.
Csv parse_csv(std::string_view text, const std::string& name);

}  // namespace megalith::plan
