#include "data/prepare/document_fields.h"

#include <algorithm>

#include "core/error.h"

namespace megalith::data {

namespace {
// The paths of keys and filters, each once.
std::vector<std::string> paths_of(const std::vector<std::string>& keys, const std::vector<FieldFilter>& keep) {
  std::vector<std::string> paths;
  const auto add = [&paths](const std::string& path) {
    if (std::find(paths.begin(), paths.end(), path) == paths.end()) paths.push_back(path);
  };
  for (const std::string& key : keys) add(key);
  for (const FieldFilter& filter : keep) add(filter.path);
  return paths;
}
}  // namespace

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

DocumentFields::DocumentFields(std::vector<std::string> keys, std::vector<FieldFilter> keep, BadText bad_text)
    : keys_(std::move(keys)), keep_(std::move(keep)), fields_(paths_of(keys_, keep_), bad_text) {
  const auto paths = paths_of(keys_, keep_);
  const auto index_of = [&paths](const std::string& path) {
    return static_cast<size_t>(std::find(paths.begin(), paths.end(), path) - paths.begin());
  };
  for (const std::string& key : keys_) key_values_.push_back(index_of(key));
  for (const FieldFilter& filter : keep_) keep_values_.push_back(index_of(filter.path));
}

bool DocumentFields::kept() const {
  for (size_t i = 0; i < keep_.size(); ++i) {
    const JsonValue& value = fields_.values()[keep_values_[i]];
    const auto& allowed = keep_[i].values;
    const bool comparable = value.type == "string" || value.type == "number" || value.type == "boolean";
    if (!comparable || std::find(allowed.begin(), allowed.end(), value.text) == allowed.end()) return false;
  }
  return true;
}

LineVerdict DocumentFields::read(std::string_view line) {
  if (auto problem = fields_.read(line)) {
    problem_ = std::move(*problem);
    return LineVerdict::bad;
  }
  if (!kept()) return LineVerdict::filtered;
  for (size_t i = 0; i < keys_.size(); ++i) {
    const JsonValue& value = fields_.values()[key_values_[i]];
    if (value.type == "string") continue;
    problem_ = value.type.empty()
                   ? JsonProblem{BadLine::missing_key, fmt::format("nothing under the key \"{}\"", keys_[i])}
                   : JsonProblem{BadLine::not_text, fmt::format("{} under the key \"{}\"", value.type, keys_[i])};
    return LineVerdict::bad;
  }
  return LineVerdict::document;
}

}  // namespace megalith::data
