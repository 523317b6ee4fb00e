#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "data/prepare/json/json_fields.h"

namespace megalith::data {

// Keeps the documents whose value at a path is one of a set.
struct FieldFilter {
  std::string path;
  std::vector<std::string> values;
};

// "meta.source=Wikipedia,Books"; "\," is a comma within a value.
FieldFilter parse_field_filter(std::string_view text);

enum class LineVerdict { document, filtered, bad };

// What makes a line a document: texts under some keys, and no filter that leaves it out.
class FieldRules {
 public:
  FieldRules(std::vector<std::string> keys, std::vector<FieldFilter> keep);

  // The paths of keys and filters, each once.
  const std::vector<std::string>& paths() const { return paths_; }
  size_t keys() const { return keys_.size(); }
  // Which path belongs to a key.
  size_t path_of_key(size_t key) const { return key_paths_[key]; }
  // No value that a filter lets pass is longer.
  size_t longest_kept_value() const;

  // `values` of the paths; `problem` is set for a bad line.
  LineVerdict judge(const std::vector<JsonValue>& values, JsonProblem& problem) const;

 private:
  bool kept(const std::vector<JsonValue>& values) const;

  std::vector<std::string> keys_;
  std::vector<FieldFilter> keep_;
  std::vector<std::string> paths_;
  std::vector<size_t> key_paths_;
  std::vector<size_t> keep_paths_;
};

// What one JSON line gives: the texts under some keys, unless a filter leaves it out.
class DocumentFields {
 public:
  DocumentFields(std::vector<std::string> keys, std::vector<FieldFilter> keep, BadText bad_text);

  // `line` is followed by TextBuffer::kPadding readable bytes. The texts stay until the next call.
  LineVerdict read(std::string_view line);
  std::string_view text(size_t key) const { return fields_.values()[rules_.path_of_key(key)].text; }
  const JsonProblem& problem() const { return problem_; }

 private:
  FieldRules rules_;
  JsonFields fields_;
  JsonProblem problem_;
};

}  // namespace megalith::data
