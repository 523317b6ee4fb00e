#include "config/interpolate.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "config/keys.h"
#include "config/scalar.h"
#include "core/error.h"

namespace megalith::config {
namespace {

// Bounds that no honest recipe reaches; without them a few lines could ask for gigabytes.
constexpr int kMaxEvaluations = 1000;
constexpr size_t kMaxText = 65536;
constexpr size_t kMaxNesting = 50;

// The position of the brace that closes the one at `open`, or npos.
size_t closing_brace(std::string_view text, size_t open) {
  int depth = 0;
  for (size_t i = open; i < text.size(); ++i) {
    if (text[i] == '{') ++depth;
    if (text[i] == '}' && --depth == 0) return i;
  }
  return std::string_view::npos;
}

// Parts between the separators that stand outside of braces.
std::vector<std::string_view> split_outside_braces(std::string_view text, char separator, size_t limit = SIZE_MAX) {
  std::vector<std::string_view> parts;
  size_t start = 0;
  int depth = 0;
  for (size_t i = 0; i < text.size() && parts.size() + 1 < limit; ++i) {
    if (text[i] == '{') ++depth;
    if (text[i] == '}') --depth;
    if (text[i] == separator && depth == 0) {
      parts.push_back(text.substr(start, i - start));
      start = i + 1;
    }
  }
  parts.push_back(text.substr(start));
  return parts;
}

Value scalar(std::string text) {
  Value value;
  value.kind = Value::Kind::scalar;
  value.text = std::move(text);
  return value;
}

Value value_of_field(const Field& field) {
  if (const auto* text = std::get_if<std::string*>(&field)) return (*text)->empty() ? Value{} : scalar(**text);
  if (const auto* choice = std::get_if<Choice>(&field)) {
    const std::string_view word = choice->word(choice->value);
    return word.empty() ? Value{} : scalar(std::string(word));
  }
  Value list;
  list.kind = Value::Kind::list;
  if (const auto* numbers = std::get_if<std::vector<int64_t>*>(&field)) {
    for (const int64_t number : **numbers) list.items.push_back(scalar(std::to_string(number)));
    return list;
  }
  if (const auto* numbers = std::get_if<std::vector<double>*>(&field)) {
    for (const double number : **numbers) list.items.push_back(scalar(write_double(number)));
    return list;
  }
  if (const auto* texts = std::get_if<std::vector<std::string>*>(&field)) {
    for (const auto& text : **texts) list.items.push_back(scalar(text));
    return list;
  }
  return scalar(value_text(field));
}

int64_t divide_floor(int64_t a, int64_t b) {
  return a / b - ((a % b != 0 && (a < 0) != (b < 0)) ? 1 : 0);
}

}  // namespace

Value Resolver::resolve(const std::string& path, const Value& value) {
  const bool outermost = active_.empty();
  if (outermost) {
    origin_ = value.origin;
    evaluations_ = 0;
  }
  if (std::find(active_.begin(), active_.end(), path) != active_.end()) {
    user_error("{}: interpolations go in a circle: {} -> {}", origin_, fmt::join(active_, " -> "), path);
  }
  if (active_.size() > kMaxNesting) user_error("{}: `{}`: interpolations are nested too deeply", origin_, active_[0]);

  active_.push_back(path);
  Value resolved = value;
  try {
    if (value.kind == Value::Kind::scalar) resolved = evaluate(path, value.text);
    if (value.kind == Value::Kind::list) {
      for (Value& item : resolved.items) {
        if (item.kind == Value::Kind::scalar) item = evaluate(path, item.text);
      }
    }
  } catch (...) {
    active_.pop_back();
    throw;
  }
  active_.pop_back();
  resolved.origin = value.origin;
  return resolved;
}

Value Resolver::evaluate(const std::string& path, std::string_view text) {
  if (text.find("${") == std::string_view::npos) return scalar(std::string(text));
  if (++evaluations_ > kMaxEvaluations) user_error("{}: `{}`: too many interpolations", origin_, path);
  std::string result;
  for (size_t at = 0; at < text.size();) {
    const size_t open = text.find("${", at);
    result += text.substr(at, open == std::string_view::npos ? open : open - at);
    if (open == std::string_view::npos) break;
    const size_t close = closing_brace(text, open + 1);
    if (close == std::string_view::npos) user_error("{}: `{}`: `{}` has no closing brace", origin_, path, text);
    const std::string_view body = text.substr(open + 2, close - open - 2);
    Value part = expression(path, body);
    if (open == 0 && close + 1 == text.size()) return part;  // alone, an interpolation may also be null or a list
    result += scalar_text(part, body);
    if (result.size() > kMaxText) user_error("{}: `{}`: interpolations make a text that is too long", origin_, path);
    at = close + 1;
  }
  return scalar(std::move(result));
}

Value Resolver::expression(const std::string& path, std::string_view body) {
  const auto parts = split_outside_braces(body, ':', 2);
  if (parts.size() == 1) return reference(path, scalar_text(evaluate(path, trimmed(body)), body));
  std::vector<std::string> arguments;
  for (const auto argument : split_outside_braces(parts[1], ',')) {
    arguments.push_back(scalar_text(evaluate(path, trimmed(argument)), argument));
  }
  return function(trimmed(parts[0]), arguments);
}

Value Resolver::reference(const std::string& path, std::string_view target) {
  std::string absolute = own_name(target);
  if (target.starts_with('.')) {
    std::string base = path;
    std::string_view rest = target;
    while (rest.starts_with('.')) {
      const size_t dot = base.rfind('.');
      if (base.empty()) user_error("{}: `{}`: ${{{}}} leads above the root", origin_, path, target);
      base = dot == std::string::npos ? "" : base.substr(0, dot);
      rest.remove_prefix(1);
    }
    absolute = base.empty() ? std::string(rest) : base + "." + std::string(rest);
  }

  const Value* written = document_.find(absolute);
  if (written && written->kind == Value::Kind::other)
    user_error("{}: `{}`: `{}` is not a value", origin_, path, absolute);
  if (written && written->kind != Value::Kind::null) return resolve(absolute, *written);
  for (const Key& key : keys_of(defaults_)) {
    if (key.path == absolute) return value_of_field(key.field);
  }
  if (written) return {};
  user_error("{}: `{}` refers to `{}`, which is not set", origin_, path, absolute);
}

Value Resolver::function(std::string_view name, const std::vector<std::string>& arguments) {
  const std::string& key = active_.back();
  if (name.starts_with("oc.env")) {
    user_error("{}: `{}`: environment variables are not read here; pass key=value instead", origin_, key);
  }
  const bool known = name == "multiply" || name == "sum" || name == "divide_floor" || name == "divide_ceil";
  if (!known)
    user_error("{}: `{}`: unknown interpolation ${{{}:...}}; known: multiply, sum, divide_floor, divide_ceil", origin_,
               key, name);
  if (arguments.size() != 2) user_error("{}: `{}`: ${{{}:...}} takes two numbers", origin_, key, name);

  const auto a = read_int(arguments[0]);
  const auto b = read_int(arguments[1]);
  if (a && b) {
    int64_t result = 0;
    bool fits = true;
    if (name == "multiply") fits = !__builtin_mul_overflow(*a, *b, &result);
    if (name == "sum") fits = !__builtin_add_overflow(*a, *b, &result);
    if (name.starts_with("divide")) {
      fits = *b != 0 && *a != INT64_MIN;
      if (fits) result = name == "divide_floor" ? divide_floor(*a, *b) : -divide_floor(-*a, *b);
    }
    if (!fits) user_error("{}: `{}`: {} of {} and {} has no whole result", origin_, key, name, *a, *b);
    return scalar(std::to_string(result));
  }
  const auto x = read_double(arguments[0]);
  const auto y = read_double(arguments[1]);
  if (!x || !y || name.starts_with("divide")) {
    user_error("{}: `{}`: ${{{}:...}} takes {}numbers, not '{}' and '{}'", origin_, key, name,
               name.starts_with("divide") ? "whole " : "", arguments[0], arguments[1]);
  }
  const double result = name == "multiply" ? *x * *y : *x + *y;
  if (!std::isfinite(result)) user_error("{}: `{}`: {} of {} and {} is too large", origin_, key, name, *x, *y);
  return scalar(write_double(result));
}

std::string Resolver::scalar_text(const Value& value, std::string_view expression) {
  if (value.kind == Value::Kind::null) return "null";
  if (value.kind != Value::Kind::scalar) user_error("{}: ${{{}}} is not a single value", origin_, expression);
  return value.text;
}

}  // namespace megalith::config
