#include "data/prepare/json_text.h"

#include <cstdint>

#include "core/error.h"

namespace megalith::data {

namespace {
constexpr std::string_view kReplacement = "\xEF\xBF\xBD";

struct Lead {
  int length = 0;  // 0: no character begins with this byte
  unsigned char second_low = 0x80;
  unsigned char second_high = 0xBF;
};

Lead lead_of(unsigned char byte) {
  if (byte < 0x80) return {1};
  if (byte >= 0xC2 && byte <= 0xDF) return {2};
  if (byte == 0xE0) return {3, 0xA0, 0xBF};
  if (byte == 0xED) return {3, 0x80, 0x9F};
  if (byte >= 0xE1 && byte <= 0xEF) return {3};
  if (byte == 0xF0) return {4, 0x90, 0xBF};
  if (byte >= 0xF1 && byte <= 0xF3) return {4};
  if (byte == 0xF4) return {4, 0x80, 0x8F};
  return {};
}

// How many bytes from the start of `text` belong together, and whether they are a character.
std::pair<size_t, bool> next_sequence(std::string_view text) {
  const Lead lead = lead_of(static_cast<unsigned char>(text[0]));
  if (lead.length == 0) return {1, false};
  size_t count = 1;
  for (; count < static_cast<size_t>(lead.length) && count < text.size(); ++count) {
    const auto byte = static_cast<unsigned char>(text[count]);
    const unsigned char low = count == 1 ? lead.second_low : 0x80;
    const unsigned char high = count == 1 ? lead.second_high : 0xBF;
    if (byte < low || byte > high) break;
  }
  return {count, count == static_cast<size_t>(lead.length)};
}

void append_code_point(std::string& text, uint32_t code) {
  const auto put = [&text](uint32_t byte) { text.push_back(static_cast<char>(byte)); };
  if (code < 0x80) {
    put(code);
  } else if (code < 0x800) {
    put(0xC0 | code >> 6);
    put(0x80 | (code & 0x3F));
  } else if (code < 0x10000) {
    put(0xE0 | code >> 12);
    put(0x80 | (code >> 6 & 0x3F));
    put(0x80 | (code & 0x3F));
  } else {
    put(0xF0 | code >> 18);
    put(0x80 | (code >> 12 & 0x3F));
    put(0x80 | (code >> 6 & 0x3F));
    put(0x80 | (code & 0x3F));
  }
}

std::optional<uint32_t> read_hex4(std::string_view text) {
  if (text.size() < 4) return std::nullopt;
  uint32_t value = 0;
  for (const char c : text.substr(0, 4)) {
    const char lower = static_cast<char>(c | 0x20);
    if (c >= '0' && c <= '9') {
      value = value * 16 + static_cast<uint32_t>(c - '0');
    } else if (lower >= 'a' && lower <= 'f') {
      value = value * 16 + static_cast<uint32_t>(lower - 'a') + 10;
    } else {
      return std::nullopt;
    }
  }
  return value;
}

std::optional<char> simple_escape(char c) {
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

std::string replace_ill_formed_utf8(std::string_view bytes) {
  std::string text;
  text.reserve(bytes.size());
  while (!bytes.empty()) {
    const auto [count, is_character] = next_sequence(bytes);
    text += is_character ? bytes.substr(0, count) : kReplacement;
    bytes.remove_prefix(count);
  }
  return text;
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
    if (const auto plain = simple_escape(quoted[i])) {
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
      text += kReplacement;
    } else {
      append_code_point(text, *code);
    }
  }
  return std::nullopt;
}

}  // namespace megalith::data
