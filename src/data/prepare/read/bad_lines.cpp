#include "data/prepare/read/bad_lines.h"

#include <nlohmann/json.hpp>

namespace megalith::data {

std::string_view name_of(BadLine kind) {
  switch (kind) {
    case BadLine::not_json:
      return "not a JSON object";
    case BadLine::invalid_utf8:
      return "invalid UTF-8";
    case BadLine::control_character:
      return "raw control character in a string";
    case BadLine::bad_escape:
      return "bad escape or lone surrogate";
    case BadLine::missing_key:
      return "missing key";
    case BadLine::not_text:
      return "value is not text";
    case BadLine::too_long:
      return "document too long";
    case BadLine::too_many_tokens:
      return "too many tokens";
    case BadLine::special_text:
      return "special string in the text";
    case BadLine::damaged_file:
      return "damaged file";
  }
  return "?";
}

void BadLines::add(BadLine kind, std::string place) {
  Kind& entry = kinds_[static_cast<size_t>(kind)];
  ++entry.count;
  if (entry.examples.size() < kExamples) entry.examples.push_back(std::move(place));
}

void BadLines::append(const BadLines& later) {
  for (size_t i = 0; i < kinds_.size(); ++i) {
    kinds_[i].count += later.kinds_[i].count;
    for (const std::string& place : later.kinds_[i].examples) {
      if (kinds_[i].examples.size() < kExamples) kinds_[i].examples.push_back(place);
    }
  }
}

int64_t BadLines::total() const {
  int64_t sum = 0;
  for (const Kind& kind : kinds_) sum += kind.count;
  return sum;
}

nlohmann::json BadLines::to_json() const {
  auto json = nlohmann::json::object();
  for (int i = 0; i < kBadLineKinds; ++i) {
    const Kind& kind = kinds_[static_cast<size_t>(i)];
    if (kind.count == 0) continue;
    json[std::string(name_of(static_cast<BadLine>(i)))] = {{"count", kind.count}, {"first", kind.examples}};
  }
  return json;
}

BadLines BadLines::from_json(const nlohmann::json& json) {
  BadLines lines;
  for (int i = 0; i < kBadLineKinds; ++i) {
    const auto found = json.find(std::string(name_of(static_cast<BadLine>(i))));
    if (found == json.end()) continue;
    Kind& kind = lines.kinds_[static_cast<size_t>(i)];
    kind.count = found->at("count").get<int64_t>();
    kind.examples = found->at("first").get<std::vector<std::string>>();
  }
  return lines;
}

}  // namespace megalith::data
