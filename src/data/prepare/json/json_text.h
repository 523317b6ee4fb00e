#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace megalith::data {

// "a.b\.c" is {"a", "b.c"}. User error for an empty key.
std::vector<std::string> split_json_path(std::string_view path);

// Paths as a tree of keys.
struct JsonPathNode {
  std::string key;
  int path = -1;  // which one ends here
  std::vector<JsonPathNode> children;

  // Null when no path goes there.
  const JsonPathNode* find(std::string_view child) const {
    for (const JsonPathNode& node : children) {
      if (node.key == child) return &node;
    }
    return nullptr;
  }
};
JsonPathNode json_path_tree(const std::vector<std::string>& paths);

// Appends the text, or a piece of it, as it is written between quotes. Bytes that are no UTF-8 stay as they are.
void append_escaped(std::string& json, std::string_view text);

// What a backslash and this character stand for; nothing if it is no escape of one character.
std::optional<char> simple_json_escape(char c);
// -1: no digit.
int hex_digit(char c);

// The text of a JSON string whose bytes are valid UTF-8; `quoted` begins with its quote and may go on behind its end. A
// surrogate without its other half becomes U+FFFD. Nothing for any other bad escape.
std::optional<std::string> unescape_with_replacement(std::string_view quoted);

}  // namespace megalith::data
