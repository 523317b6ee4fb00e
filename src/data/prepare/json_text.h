#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace megalith::data {

// "a.b\.c" is {"a", "b.c"}. User error for an empty key.
std::vector<std::string> split_json_path(std::string_view path);

// The text of a JSON string whose bytes are valid UTF-8; `quoted` begins with its quote and may go on behind its end. A
// surrogate without its other half becomes U+FFFD. Nothing for any other bad escape.
std::optional<std::string> unescape_with_replacement(std::string_view quoted);

}  // namespace megalith::data
