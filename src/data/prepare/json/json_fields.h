#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "data/prepare/read/bad_lines.h"

namespace megalith::data {

// Text that is no Unicode: invalid UTF-8, and escapes of one half of a surrogate pair.
enum class BadText {
  reject,   // the line is bad
  replace,  // U+FFFD stands for it
};

struct JsonValue {
  std::string_view type;  // "string", "number", ...; empty: nothing there
  std::string_view text;  // of a string; of a number, true or false as it is written
};

struct JsonProblem {
  BadLine kind = BadLine::not_json;
  std::string detail;
};

// User error in a build without simdjson, which cannot read JSON lines.
void require_json_reader();

// Takes the values at some paths out of one JSON object a line. A path names keys from the outside in, separated by
// dots ("meta.source"); "\." is a dot within a key. Keys are compared after their escapes are resolved, and of equal
// keys the last one counts, as in Python. Fields that no path names are passed over without a look inside.
class JsonFields {
 public:
  JsonFields(const std::vector<std::string>& paths, BadText bad_text);
  ~JsonFields();
  JsonFields(JsonFields&&) noexcept;

  // `line` is followed by TextBuffer::kPadding readable bytes. What values() shows stays until the next call.
  std::optional<JsonProblem> read(std::string_view line);
  const std::vector<JsonValue>& values() const;  // in the order of the paths

 private:
  struct Implementation;
  std::unique_ptr<Implementation> implementation_;
};

}  // namespace megalith::data
