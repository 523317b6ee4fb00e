#include "data/prepare/json/json_text.h"

#include <cstdint>
#include <iterator>

#include "core/error.h"
#include "data/utf8.h"

namespace megalith::data {

int hex_digit(char c) {
  const char lower = static_cast<char>(c | 0x20);
  if (c >= '0' && c <= '9') return c - '0';
  return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
}

std::optional<char> simple_json_escape(char c) {
  switch (c) {
    case '"':
    case '\\':
    case '/':
      return c;
    case 'b':
      return '\b';
    case 'f':
      return '\f';
    case 'n':
      return '\n';
    case 'r':
      return '\r';
    case 't':
      return '\t';
    default:
      return std::nullopt;
  }
}

namespace {
std::optional<uint32_t> read_hex4(std::string_view text) {
  if (text.size() < 4) return std::nullopt;
  uint32_t value = 0;
  for (const char c : text.substr(0, 4)) {
    if (hex_digit(c) < 0) return std::nullopt;
    value = value * 16 + static_cast<uint32_t>(hex_digit(c));
  }
  return value;
}
}  // namespace

std::vector<std::string> split_json_path(std::string_view path) {
  std::vector<std::string> keys(1);
  for (size_t i = 0; i < path.size(); ++i) {
    if (path[i] == '\\' && i + 1 < path.size() && path[i + 1] == '.') {
      keys.back() += path[++i];
    } else if (path[i] == '.') {
      keys.emplace_back();
    } else {
      keys.back() += path[i];
    }
  }
  for (const std::string& key : keys) {
    if (key.empty()) user_error("the JSON key \"{}\" has an empty part", path);
  }
  return keys;
}

JsonPathNode json_path_tree(const std::vector<std::string>& paths) {
  JsonPathNode root;
  for (size_t i = 0; i < paths.size(); ++i) {
    JsonPathNode* node = &root;
    for (const std::string& key : split_json_path(paths[i])) {
      auto* found = const_cast<JsonPathNode*>(node->find(key));
      if (found == nullptr) found = &node->children.emplace_back(JsonPathNode{.key = key});
      node = found;
    }
    node->path = static_cast<int>(i);
  }
  return root;
}

void append_escaped(std::string& json, std::string_view text) {
  size_t begin = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    const auto c = static_cast<unsigned char>(text[i]);
    if (c >= 0x20 && c != '"' && c != '\\') continue;
    json += text.substr(begin, i - begin);
    begin = i + 1;
    if (c == '\n') {
      json += "\\n";
    } else if (c < 0x20) {
      fmt::format_to(std::back_inserter(json), "\\u{:04x}", c);
    } else {
      json += '\\';
      json += text[i];
    }
  }
  json += text.substr(begin);
}

std::optional<std::string> unescape_with_replacement(std::string_view quoted) {
  std::string text;
  for (size_t i = 1; i < quoted.size(); ++i) {
    if (quoted[i] == '"') return text;
    if (quoted[i] != '\\') {
      text += quoted[i];
      continue;
    }
    if (++i >= quoted.size()) return std::nullopt;
    if (const auto plain = simple_json_escape(quoted[i])) {
      text += *plain;
      continue;
    }
    auto code = quoted[i] == 'u' ? read_hex4(quoted.substr(i + 1)) : std::nullopt;
    if (!code) return std::nullopt;
    i += 4;
    if (*code >= 0xD800 && *code < 0xDC00 && quoted.substr(i + 1, 2) == "\\u") {
      const auto low = read_hex4(quoted.substr(i + 3));
      if (low && *low >= 0xDC00 && *low < 0xE000) {
        code = 0x10000 + ((*code - 0xD800) << 10) + (*low - 0xDC00);
        i += 6;
      }
    }
    if (*code >= 0xD800 && *code < 0xE000) {
      text += kReplacementCharacter;
    } else {
      append_utf8(text, *code);
    }
  }
  return std::nullopt;
}

}  // namespace megalith::data
