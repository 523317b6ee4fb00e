#include "config/scalar.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>

namespace megalith::config {
namespace {

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

// Drops a leading plus and underscores between digits, which std::from_chars does not know.
std::optional<std::string> number_text(std::string_view text) {
  const bool signed_plus = text.starts_with('+');
  if (signed_plus) text.remove_prefix(1);
  if (text.empty() || text[0] == '+' || (signed_plus && text[0] == '-')) return std::nullopt;
  std::string digits;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '_') {
      digits += text[i];
      continue;
    }
    const bool between = i > 0 && i + 1 < text.size() && is_digit(text[i - 1]) && is_digit(text[i + 1]);
    if (!between) return std::nullopt;
  }
  return digits;
}

template <class Number>
std::optional<Number> from_text(const std::string& text) {
  Number number{};
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc{} || stop != end) return std::nullopt;
  return number;
}

}  // namespace

std::optional<bool> read_bool(std::string_view text) {
  const std::string word = lower_case(text);
  if (word == "true" || word == "yes" || word == "on") return true;
  if (word == "false" || word == "no" || word == "off") return false;
  return std::nullopt;
}

std::optional<int64_t> read_int(std::string_view text) {
  const auto digits = number_text(text);
  if (!digits) return std::nullopt;
  const size_t first = (*digits)[0] == '-' ? 1 : 0;
  if (digits->size() > first + 1 && (*digits)[first] == '0' && is_digit((*digits)[first + 1])) return std::nullopt;
  if (const auto whole = from_text<int64_t>(*digits)) return whole;
  const auto fraction = read_double(text);
  // Above 2^53 a double no longer tells neighbouring whole numbers apart.
  if (!fraction || *fraction != std::trunc(*fraction) || std::abs(*fraction) > 9007199254740992.0) return std::nullopt;
  // Digits alone that did not fit above are out of range, whatever a double makes of them.
  if (std::all_of(digits->begin() + static_cast<ptrdiff_t>(first), digits->end(), is_digit)) return std::nullopt;
  return static_cast<int64_t>(*fraction);
}

std::optional<double> read_double(std::string_view text) {
  const auto digits = number_text(text);
  if (!digits) return std::nullopt;
  const auto number = from_text<double>(*digits);
  if (!number || !std::isfinite(*number)) return std::nullopt;
  return number;
}

std::string write_double(double value) {
  std::string text = fmt::format("{}", value);
  if (text.find('.') != std::string::npos || !std::isfinite(value)) return text;
  const size_t exponent = text.find('e');
  text.insert(exponent == std::string::npos ? text.size() : exponent, ".0");
  return text;
}

std::string write_string(std::string_view text) {
  const auto plain_char = [](char c) {
    return is_letter(c) || is_digit(c) || c == '_' || c == '/' || c == '.' || c == '-';
  };
  const bool plain = !text.empty() && (is_letter(text[0]) || text[0] == '/' || text[0] == '_') &&
                     std::all_of(text.begin(), text.end(), plain_char) && !read_bool(text) &&
                     lower_case(text) != "null" && lower_case(text) != "y" && lower_case(text) != "n";
  if (plain) return std::string(text);
  std::string quoted = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      quoted += '\\';
      quoted += c;
    } else if (byte < 0x20 || byte == 0x7f) {
      quoted += fmt::format("\\x{:02x}", byte);
    } else {
      quoted += c;
    }
  }
  return quoted + "\"";
}

// The well-formed sequences of the Unicode standard, table 3-7: no overlong forms, no surrogates.
bool is_utf8(std::string_view text) {
  const auto byte_at = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  for (size_t i = 0; i < text.size();) {
    const unsigned lead = byte_at(i);
    if (lead < 0x80) {
      ++i;
      continue;
    }
    const size_t length = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
    if (lead < 0xc2 || lead > 0xf4 || i + length > text.size()) return false;
    for (size_t k = 1; k < length; ++k) {
      const unsigned low = k > 1 ? 0x80 : lead == 0xe0 ? 0xa0 : lead == 0xf0 ? 0x90 : 0x80;
      const unsigned high = k > 1 ? 0xbf : lead == 0xed ? 0x9f : lead == 0xf4 ? 0x8f : 0xbf;
      if (byte_at(i + k) < low || byte_at(i + k) > high) return false;
    }
    i += length;
  }
  return true;
}

std::string_view trimmed(std::string_view text) {
  const size_t first = text.find_first_not_of(" \t\r\n");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t\r\n") - first + 1);
}

std::string lower_case(std::string_view text) {
  std::string lower(text);
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
  return lower;
}

}  // namespace megalith::config
