#include "checkpoint/format/strict_json.h"

#include <algorithm>
#include <unordered_set>

#include "core/error.h"

namespace megalith::checkpoint {

using nlohmann::json;

json parse_strict_json(std::string_view text, const JsonLimits& limits, const std::string& where) {
  if (static_cast<int64_t>(text.size()) > limits.max_bytes) {
    data_error("{}: {} bytes of JSON, at most {} are accepted", where, text.size(), limits.max_bytes);
  }
  int64_t values = 0;
  std::vector<std::unordered_set<std::string>> keys;  // of the objects that are open
  const auto watch = [&](int depth, json::parse_event_t event, json& parsed) {
    if (depth > limits.max_depth) data_error("{}: JSON nested deeper than {}", where, limits.max_depth);
    if (event != json::parse_event_t::object_end && event != json::parse_event_t::array_end &&
        ++values > limits.max_values) {
      data_error("{}: more than {} JSON values", where, limits.max_values);
    }
    if (event == json::parse_event_t::object_start) keys.emplace_back();
    if (event == json::parse_event_t::object_end) keys.pop_back();
    if (event == json::parse_event_t::key && !keys.back().insert(parsed.get<std::string>()).second) {
      data_error("{}: the key '{}' stands twice", where, parsed.get<std::string>());
    }
    return true;
  };
  try {
    return json::parse(text.begin(), text.end(), watch);
  } catch (const json::exception& error) {
    data_error("{}: not valid JSON ({})", where, error.what());
  }
}

namespace {
int64_t to_int(const json& value, const StrictObject& object, const char* key) {
  if (value.is_number_unsigned()) {
    const auto number = value.get<uint64_t>();
    if (number <= static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) return static_cast<int64_t>(number);
  } else if (value.is_number_integer()) {
    return value.get<int64_t>();
  }
  object.refuse(fmt::format("'{}' is not a 64-bit integer", key));
}
}  // namespace

StrictObject::StrictObject(const json& value, std::string where) : object_(value), where_(std::move(where)) {
  if (!object_.is_object()) refuse("not a JSON object");
}

void StrictObject::refuse(const std::string& reason) const {
  data_error("{}: {}", where_, reason);
}

const json& StrictObject::take(const char* key) {
  const auto found = object_.find(key);
  if (found == object_.end()) refuse(fmt::format("the field '{}' is missing", key));
  taken_.emplace_back(key);
  return *found;
}

const json& StrictObject::take_array(const char* key) {
  const json& value = take(key);
  if (!value.is_array()) refuse(fmt::format("'{}' is not an array", key));
  return value;
}

std::string StrictObject::take_string(const char* key) {
  const json& value = take(key);
  if (!value.is_string()) refuse(fmt::format("'{}' is not a string", key));
  return value.get<std::string>();
}

int64_t StrictObject::take_int(const char* key, int64_t min, int64_t max) {
  const int64_t value = to_int(take(key), *this, key);
  if (value < min || value > max) refuse(fmt::format("'{}' is {}, outside [{}, {}]", key, value, min, max));
  return value;
}

std::vector<int64_t> StrictObject::take_ints(const char* key) {
  std::vector<int64_t> numbers;
  for (const json& element : take_array(key)) numbers.push_back(to_int(element, *this, key));
  return numbers;
}

void StrictObject::finish() const {
  if (taken_.size() == object_.size()) return;
  for (const auto& [key, value] : object_.items()) {
    if (std::find(taken_.begin(), taken_.end(), key) == taken_.end()) refuse(fmt::format("unknown field '{}'", key));
  }
}

}  // namespace megalith::checkpoint
