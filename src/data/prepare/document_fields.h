#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "data/prepare/json_fields.h"

namespace megalith::data {

// Keeps the documents whose value at a path is one of a set.
struct FieldFilter {
  std::string path;
  std::vector<std::string> values;
};

// "meta.source=Wikipedia,Books"; "\," is a comma within a value.
FieldFilter parse_field_filter(std::string_view text);

enum class LineVerdict { document, filtered, bad };

// What one JSON line gives: the texts under some keys, unless a filter leaves it out.
class DocumentFields {
 public:
  DocumentFields(std::vector<std::string> keys, std::vector<FieldFilter> keep, BadText bad_text);

  // `line` is followed by TextBuffer::kPadding readable bytes. The texts stay until the next call.
  LineVerdict read(std::string_view line);
  std::string_view text(size_t key) const { return fields_.values()[key_values_[key]].text; }
  const JsonProblem& problem() const { return problem_; }

 private:
  bool kept() const;

  std::vector<std::string> keys_;
  std::vector<FieldFilter> keep_;
  std::vector<size_t> key_values_;  // which value of fields_ belongs to a key
  std::vector<size_t> keep_values_;
  JsonFields fields_;
  JsonProblem problem_;
};

}  // namespace megalith::data
