#include "launch/kubernetes/yaml_writer.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "config/scalar.h"
#include "core/error.h"

namespace megalith::launch {

namespace {

using Json = nlohmann::ordered_json;

constexpr uint32_t kTab = 0x09, kLineEnd = 0x0a;

struct CodePoint {
  uint32_t value;
  size_t length;
};

// Of text that is_utf8() holds for.
CodePoint code_point_at(std::string_view text, size_t at) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[at + i]); };
  const unsigned lead = byte(0);
  if (lead < 0x80) return {lead, 1};
  const size_t length = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
  uint32_t value = lead & (0xffU >> (length + 1));
  for (size_t i = 1; i < length; ++i) value = value << 6 | (byte(i) & 0x3fU);
  return {value, length};
}

// Control characters, the line ends that only YAML 1.1 knows, byte order marks, and what is no character.
bool needs_escape(uint32_t code) {
  return code < 0x20 || (code >= 0x7f && code < 0xa0) || code == 0x2028 || code == 0x2029 || code == 0xfeff ||
         code == 0xfffe || code == 0xffff;
}

std::string quoted(std::string_view text) {
  std::string result = "\"";
  for (size_t at = 0; at < text.size();) {
    const CodePoint point = code_point_at(text, at);
    if (point.value == kLineEnd) {
      result += "\\n";
    } else if (point.value == kTab) {
      result += "\\t";
    } else if (needs_escape(point.value)) {
      result += fmt::format("\\u{:04x}", point.value);
    } else {
      if (point.value == '"' || point.value == '\\') result += '\\';
      result += text.substr(at, point.length);
    }
    at += point.length;
  }
  return result + "\"";
}

// Lines that a literal block can hold as they are.
bool fits_a_block(std::string_view text) {
  const bool has_lines = text.find('\n') != std::string_view::npos && text.find('\n') + 1 < text.size();
  const bool begins_blank = text.find_first_of(" \t\n") == 0;
  if (!has_lines || begins_blank || text.ends_with("\n\n")) return false;
  for (size_t at = 0; at < text.size();) {
    const CodePoint point = code_point_at(text, at);
    if (point.value != kLineEnd && needs_escape(point.value)) return false;
    at += point.length;
  }
  return true;
}

std::string scalar(std::string_view text) {
  std::string plain = config::write_string(text);
  return plain.starts_with('"') ? quoted(text) : plain;
}

class Writer {
 public:
  // What follows a key or a dash, with the end of its line; `indent` is that of the lines below.
  void add_value(const Json& value, size_t indent) {
    if (value.is_object() && !value.empty()) {
      text_ += '\n';
      return add_members(value, indent, false);
    }
    if (value.is_array() && !value.empty()) {
      text_ += '\n';
      return add_items(value, indent >= 2 ? indent - 2 : 0);
    }
    if (value.is_string()) return add_text(value.get_ref<const std::string&>(), indent);
    text_ += fmt::format(" {}\n", value.dump());
  }

  // The first member may stand on the line of a dash.
  void add_members(const Json& map, size_t indent, bool on_line) {
    for (const auto& [name, value] : map.items()) {
      text_.append(on_line ? 1 : indent, ' ');
      on_line = false;
      text_ += scalar(name) + ":";
      add_value(value, indent + 2);
    }
  }

  std::string take() { return std::move(text_); }

 private:
  // Lists are not indented below their key.
  void add_items(const Json& list, size_t indent) {
    for (const Json& item : list) {
      text_.append(indent, ' ');
      text_ += '-';
      if (item.is_object() && !item.empty()) {
        add_members(item, indent + 2, true);
      } else if (item.is_array()) {
        text_ += fmt::format(" {}\n", item.dump());
      } else {
        add_value(item, indent + 2);
      }
    }
  }

  void add_text(const std::string& text, size_t indent) {
    if (!config::is_utf8(text)) user_error("'{}' is not UTF-8 text", text);
    if (!fits_a_block(text)) {
      text_ += fmt::format(" {}\n", scalar(text));
      return;
    }
    text_ += text.ends_with('\n') ? " |\n" : " |-\n";
    for (size_t at = 0; at < text.size();) {
      const size_t end = std::min(text.find('\n', at), text.size());
      if (end > at) text_.append(indent, ' ').append(text, at, end - at);
      text_ += '\n';
      at = end + 1;
    }
  }

  std::string text_;
};

}  // namespace

std::string to_yaml(const Json& value) {
  Writer writer;
  writer.add_members(value, 0, false);
  return writer.take();
}

}  // namespace megalith::launch
