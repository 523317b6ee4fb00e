#include "data/prepare/input_units.h"

#include <algorithm>

#include "core/error.h"

namespace megalith::data {

std::unique_ptr<ByteSource> PipelineUnit::open(const ReadOptions& options) const {
  if (!damage.empty()) data_error("{}", damage);
  return parquet ? parquet->read(row_group, bytes) : open_byte_source(file.path, options);
}

std::string PipelineUnit::name() const {
  return parquet ? fmt::format("{}: row group {}", file.path.string(), row_group) : file.path.string();
}

std::string PipelineUnit::place(int64_t line) const {
  return parquet ? fmt::format("{}, row {}", name(), line - 1) : fmt::format("{}:{}", name(), line);
}

InputUnits::InputUnits(std::vector<InputFile> files, InputFormat format, TextDocuments text, const FieldRules& rules)
    : files_(std::move(files)), format_(format), text_(text), columns_(rules.paths()) {}

std::optional<PipelineUnit> InputUnits::next() {
  if (done()) return std::nullopt;
  PipelineUnit unit;
  unit.file = files_[static_cast<size_t>(next_file_)];
  unit.cut = cut_of(unit.file.path, format_, text_);
  if (is_parquet(unit.file.path, format_)) open_parquet_file(unit);
  const int64_t parts = parquet_ ? std::max<int64_t>(parquet_->row_groups(), 1) : 1;
  unit.parquet = parquet_;
  unit.row_group = next_part_;
  unit.bytes = unit.file.size * (next_part_ + 1) / parts - unit.file.size * next_part_ / parts;
  if (++next_part_ == parts) {
    parquet_.reset();
    next_part_ = 0;
    ++next_file_;
  }
  unit.last = done();
  return unit;
}

void InputUnits::open_parquet_file(PipelineUnit& unit) {
  if (parquet_) return;
  try {
    parquet_ = open_parquet(unit.file.path, columns_);
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::data) throw;
    unit.damage = error.what();
  }
}

}  // namespace megalith::data
