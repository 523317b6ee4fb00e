#include "observe/sinks/python_json.h"

#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>

namespace megalith::observe {

using nlohmann::ordered_json;

std::string python_repr(double number) {
  if (std::isnan(number)) return "nan";
  if (std::isinf(number)) return number > 0 ? "inf" : "-inf";
  char buffer[40];
  const auto scientific = std::to_chars(std::begin(buffer), std::end(buffer), number, std::chars_format::scientific);
  std::string text(buffer, scientific.ptr);
  const size_t mark = text.find('e');
  const int exponent = std::stoi(text.substr(mark + 1));
  if (exponent < -4 || exponent >= 16) return text;
  const auto fixed = std::to_chars(std::begin(buffer), std::end(buffer), number, std::chars_format::fixed);
  text.assign(buffer, fixed.ptr);
  return text.find('.') == std::string::npos ? text + ".0" : text;
}

namespace {
std::string float_text(double number) {
  if (std::isnan(number)) return "NaN";
  if (std::isinf(number)) return number > 0 ? "Infinity" : "-Infinity";
  return python_repr(number);
}

std::string quoted(const std::string& text) {
  return ordered_json(text).dump(-1, ' ', true, ordered_json::error_handler_t::replace);
}

void append(const ordered_json& value, std::string& text) {
  if (value.is_object() || value.is_array()) {
    const bool is_object = value.is_object();
    text += is_object ? '{' : '[';
    bool first = true;
    for (const auto& [key, element] : value.items()) {
      if (!first) text += ", ";
      first = false;
      if (is_object) text += quoted(key) + ": ";
      append(element, text);
    }
    text += is_object ? '}' : ']';
  } else if (value.is_number_float()) {
    text += float_text(value.get<double>());
  } else if (value.is_string()) {
    text += quoted(value.get_ref<const std::string&>());
  } else {
    text += value.dump();
  }
}
}  // namespace

std::string python_json(const ordered_json& value) {
  std::string text;
  append(value, text);
  return text;
}

}  // namespace megalith::observe
