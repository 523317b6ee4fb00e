#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace megalith::observe {

enum class JsonKind : uint8_t { string, number, literal, object, array };

// One member of an object, as it stands in the text.
struct JsonMember {
  std::string_view parent;  // key of the object it stands in; empty at the top
  std::string_view key;
  JsonKind kind = JsonKind::literal;
  std::string_view text;  // of a string without its quotes, escapes as written
};

// Lists the members of the one JSON object that `text` is, and of the objects in it (not those deeper down), without
// building anything: logs are long and few of their fields are looked at. `members` is overwritten and keeps its
// memory; the views point into `text`. False where the text is no JSON object; Python's NaN and Infinity count as
// numbers.
bool scan_json_object(std::string_view text, std::vector<JsonMember>& members);

// Of a number, or of a string that spells one that is not finite ("nan", "inf", "-inf").
std::optional<double> number_of(const JsonMember& member);

// A whole number, also as Python writes one that it holds as a float: 40.0.
std::optional<int64_t> whole_number_of(const JsonMember& member);

// Of a string, its escapes decoded; of anything else, as written.
std::string text_of(const JsonMember& member);

}  // namespace megalith::observe
