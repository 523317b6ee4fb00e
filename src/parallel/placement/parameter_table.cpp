#include "parallel/placement/parameter_table.h"

namespace megalith::parallel {

void ParameterTable::add(ParameterSpec spec) {
  const bool is_new = index_.emplace(spec.name, specs_.size()).second;
  MEGALITH_CHECK(is_new, "parameter '{}' is listed twice", spec.name);
  int64_t rows = 0;
  for (const int64_t block : spec.blocks) {
    MEGALITH_CHECK(block % spec.cut_unit == 0, "a block of '{}' has {} rows, no multiple of {}", spec.name, block,
                   spec.cut_unit);
    rows += block;
  }
  MEGALITH_CHECK(spec.blocks.empty() || rows == spec.shape[0], "blocks of '{}' add up to {}, not {}", spec.name, rows,
                 spec.shape[0]);
  specs_.push_back(std::move(spec));
}

size_t ParameterTable::index_of(std::string_view name) const {
  const auto found = index_.find(std::string(name));
  MEGALITH_CHECK(found != index_.end(), "no parameter is named '{}'", name);
  return found->second;
}

int64_t ParameterTable::elements() const {
  int64_t count = 0;
  for (const ParameterSpec& spec : specs_) count += spec.shape.elements();
  return count;
}

}  // namespace megalith::parallel
