#include "plan/step_time/csv.h"

#include <algorithm>

#include "core/error.h"

namespace megalith::plan {

namespace {

class Scanner {
 public:
  Scanner(std::string_view text, const std::string& name) : text_(text), name_(name) {
    constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
    if (text_.starts_with(kByteOrderMark)) at_ = kByteOrderMark.size();
  }

  bool at_end() const { return at_ == text_.size(); }

  Csv::Record next() {
    Csv::Record record{.line = line_, .cells = {}};
    do {
      record.cells.push_back(cell());
    } while (take(','));
    take('\r');
    if (!at_end() && !take('\n')) user_error("{}, line {}: text after a quoted cell", name_, line_);
    ++line_;
    return record;
  }

 private:
  bool take(char c) {
    if (at_end() || text_[at_] != c) return false;
    ++at_;
    return true;
  }

  std::string cell() {
    if (take('"')) return quoted();
    const size_t end = std::min(text_.find_first_of(",\r\n", at_), text_.size());
    std::string value(text_.substr(at_, end - at_));
    at_ = end;
    return value;
  }

  std::string quoted() {
    const int64_t opened = line_;
    std::string value;
    while (!at_end()) {
      const char c = text_[at_++];
      if (c == '"' && !take('"')) return value;
      if (c == '\n') ++line_;
      value += c;
    }
    user_error("{}, line {}: a quote is opened and not closed", name_, opened);
  }

  std::string_view text_;
  const std::string& name_;
  size_t at_ = 0;
  int64_t line_ = 1;
};

}  // namespace

int64_t Csv::find(std::string_view column) const {
  const auto found = std::find(columns.begin(), columns.end(), column);
  return found == columns.end() ? -1 : found - columns.begin();
}

Csv parse_csv(std::string_view text, const std::string& name) {
  Scanner scanner(text, name);
  if (scanner.at_end()) user_error("{} is empty: expected a line with the names of its columns", name);
  Csv csv{.columns = scanner.next().cells, .records = {}};
  for (size_t i = 0; i < csv.columns.size(); ++i) {
    if (csv.find(csv.columns[i]) != static_cast<int64_t>(i))
      user_error("{} has two columns '{}': each name may be there once", name, csv.columns[i]);
  }
  while (!scanner.at_end()) {
    Csv::Record record = scanner.next();
    if (record.cells == std::vector<std::string>{""}) continue;
    if (record.cells.size() != csv.columns.size())
      user_error("{}, line {}: {} cells, and the first line names {} columns", name, record.line, record.cells.size(),
                 csv.columns.size());
    csv.records.push_back(std::move(record));
  }
  return csv;
}

}  // namespace megalith::plan
