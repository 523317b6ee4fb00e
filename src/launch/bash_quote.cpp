#include "launch/bash_quote.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/error.h"

namespace megalith::launch {

namespace {

bool is_plain(char c) {
  constexpr std::string_view kMarks = "_@%+=:,./-";
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
         kMarks.find(c) != std::string_view::npos;
}

bool is_control(char c) {
  return static_cast<unsigned char>(c) < 0x20 || c == 0x7f;
}

// $'...', which alone can show a line end or a tab.
std::string escaped(std::string_view text) {
  std::string quoted = "$'";
  for (const char c : text) {
    if (c == '\n') {
      quoted += "\\n";
    } else if (is_control(c)) {
      quoted += fmt::format("\\x{:02x}", static_cast<unsigned>(static_cast<unsigned char>(c)));
    } else {
      if (c == '\'' || c == '\\') quoted += '\\';
      quoted += c;
    }
  }
  return quoted + "'";
}

}  // namespace

std::string bash_quoted(std::string_view text) {
  if (text.find('\0') != std::string_view::npos) user_error("a value holds a zero byte, which no command can carry");
  if (!text.empty() && std::all_of(text.begin(), text.end(), is_plain)) return std::string(text);
  if (std::any_of(text.begin(), text.end(), is_control)) return escaped(text);
  std::string quoted = "'";
  for (const char c : text) {
    if (c == '\'') {
      quoted += "'\\''";
    } else {
      quoted += c;
    }
  }
  return quoted + "'";
}

std::string bash_command(const std::vector<std::string>& words, size_t first_line) {
  std::string text;
  for (size_t i = 0; i < words.size(); ++i) {
    const bool is_value = i > 0 && i >= first_line && words[i - 1].starts_with('-') && !words[i].starts_with('-') &&
                          words[i - 1].find('=') == std::string::npos;
    if (i > 0) text += i < first_line || is_value ? " " : " \\\n  ";
    text += bash_quoted(words[i]);
  }
  return text;
}

}  // namespace megalith::launch
