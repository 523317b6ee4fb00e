#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "data/prepare/json/document_fields.h"
#include "data/prepare/parquet_file.h"
#include "data/prepare/read/input_list.h"

namespace megalith::data {

// What is read front to back by one reader, and what a later run need not read again: a file, or a row group of a
// Parquet file.
struct PipelineUnit {
  int64_t id = 0;
  InputFile file;
  Cut cut = Cut::lines;
  int64_t bytes = 0;                           // its share of the file
  bool last = false;                           // of all inputs
  std::shared_ptr<const ParquetFile> parquet;  // null: the unit is a whole file
  int64_t row_group = 0;
  std::string damage;  // not empty: why the file cannot be read

  std::unique_ptr<ByteSource> open(const ReadOptions& options) const;
  // "file", or "file: row group 3" (counted from 0, as pyarrow does).
  std::string name() const;
  // "file:17", or "file: row group 3, row 16": `line` counts from 1, rows from 0.
  std::string place(int64_t line) const;
};

// The units of files, in order. A Parquet file is opened when its turn comes; one that cannot be read becomes one unit,
// which says why.
class InputUnits {
 public:
  InputUnits() = default;
  InputUnits(std::vector<InputFile> files, InputFormat format, TextDocuments text, const FieldRules& rules);

  // Nothing after the last one.
  std::optional<PipelineUnit> next();
  bool done() const { return next_file_ == std::ssize(files_); }

 private:
  void open_parquet_file(PipelineUnit& unit);

  std::vector<InputFile> files_;
  InputFormat format_ = InputFormat::by_name;
  TextDocuments text_ = TextDocuments::whole_file;
  std::vector<std::string> columns_;
  int64_t next_file_ = 0;
  int64_t next_part_ = 0;                       // of that file
  std::shared_ptr<const ParquetFile> parquet_;  // that file, while it has row groups left
};

}  // namespace megalith::data
