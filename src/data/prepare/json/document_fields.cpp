#include "data/prepare/json/document_fields.h"

#include <algorithm>

#include "core/error.h"

namespace megalith::data {

FieldFilter parse_field_filter(std::string_view text) {
  const size_t equals = text.find('=');
  if (equals == std::string_view::npos || equals == 0 || equals + 1 == text.size()) {
    user_error("'{}' is not a filter; write PATH=VALUE,VALUE,... for example meta.source=Wikipedia,Books", text);
  }
  FieldFilter filter{std::string(text.substr(0, equals)), {""}};
  for (size_t i = equals + 1; i < text.size(); ++i) {
    if (text[i] == '\\' && i + 1 < text.size() && text[i + 1] == ',') {
      filter.values.back() += text[++i];
    } else if (text[i] == ',') {
      filter.values.emplace_back();
    } else {
      filter.values.back() += text[i];
    }
  }
  return filter;
}

FieldRules::FieldRules(std::vector<std::string> keys, std::vector<FieldFilter> keep)
    : keys_(std::move(keys)), keep_(std::move(keep)) {
  const auto index_of = [this](const std::string& path) {
    const auto found = std::find(paths_.begin(), paths_.end(), path);
    const auto index = static_cast<size_t>(found - paths_.begin());
    if (found == paths_.end()) paths_.push_back(path);
    return index;
  };
  for (const std::string& key : keys_) key_paths_.push_back(index_of(key));
  for (const FieldFilter& filter : keep_) keep_paths_.push_back(index_of(filter.path));
}

size_t FieldRules::longest_kept_value() const {
  size_t longest = 0;
  for (const FieldFilter& filter : keep_) {
    for (const std::string& value : filter.values) longest = std::max(longest, value.size());
  }
  return longest;
}

bool FieldRules::kept(const std::vector<JsonValue>& values) const {
  for (size_t i = 0; i < keep_.size(); ++i) {
    const JsonValue& value = values[keep_paths_[i]];
    const auto& allowed = keep_[i].values;
    const bool comparable = value.type == "string" || value.type == "number" || value.type == "boolean";
    if (!comparable || std::find(allowed.begin(), allowed.end(), value.text) == allowed.end()) return false;
  }
  return true;
}

LineVerdict FieldRules::judge(const std::vector<JsonValue>& values, JsonProblem& problem) const {
  if (!kept(values)) return LineVerdict::filtered;
  for (size_t i = 0; i < keys_.size(); ++i) {
    const JsonValue& value = values[key_paths_[i]];
    if (value.type == "string") continue;
    problem = value.type.empty()
                  ? JsonProblem{BadLine::missing_key, fmt::format("nothing under the key \"{}\"", keys_[i])}
                  : JsonProblem{BadLine::not_text, fmt::format("{} under the key \"{}\"", value.type, keys_[i])};
    return LineVerdict::bad;
  }
  return LineVerdict::document;
}

DocumentFields::DocumentFields(std::vector<std::string> keys, std::vector<FieldFilter> keep, BadText bad_text)
    : rules_(std::move(keys), std::move(keep)), fields_(rules_.paths(), bad_text) {}

LineVerdict DocumentFields::read(std::string_view line) {
  if (auto problem = fields_.read(line)) {
    problem_ = std::move(*problem);
    return LineVerdict::bad;
  }
  return rules_.judge(fields_.values(), problem_);
}

}  // namespace megalith::data
