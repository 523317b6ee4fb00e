#include "config/environment/variables.h"

#include <charconv>
#include <limits>

#include "core/error.h"

namespace megalith::config {

std::optional<std::string> Variables::text(const std::string& name) const {
  std::optional<std::string> value = lookup_(name);
  if (value && value->empty()) value.reset();
  return value;
}

std::optional<int64_t> Variables::number(const std::string& name, int64_t least, int64_t most) const {
  const std::optional<std::string> value = text(name);
  if (!value) return std::nullopt;
  int64_t result = 0;
  const auto [end, status] = std::from_chars(value->data(), value->data() + value->size(), result);
  if (status != std::errc{} || end != value->data() + value->size() || result < least || result > most) {
    user_error("the environment variable {} is '{}', which is no number from {} to {}", name, *value, least, most);
  }
  return result;
}

std::optional<int64_t> Variables::count(const std::string& name) const {
  return number(name, 0, std::numeric_limits<int32_t>::max());
}

}  // namespace megalith::config
