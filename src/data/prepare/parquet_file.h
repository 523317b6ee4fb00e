#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "data/prepare/read/byte_source.h"

namespace megalith::data {

// The documents of a Parquet file: rows of some of its columns. Any thread may read any row group.
class ParquetFile {
 public:
  virtual ~ParquetFile() = default;
  virtual int64_t row_groups() const = 0;
  // The rows of a group as JSON lines, in memory of a page of each column; `bytes` is what consumed() counts up to.
  // Data error for what is damaged.
  virtual std::unique_ptr<ByteSource> read(int64_t row_group, int64_t bytes) const = 0;
};

// User error where the module that reads Parquet is not beside the program: it is built where Arrow is found.
void require_parquet_reader(const std::filesystem::path& path);

// `columns` are JSON paths. Data error for a file that is damaged or no Parquet, and where one of them is not a column
// of text at the top level.
std::shared_ptr<const ParquetFile> open_parquet(const std::filesystem::path& path,
                                                const std::vector<std::string>& columns);

// What the module has under the name of this function: open_parquet().
extern "C" ParquetFile* megalith_open_parquet(const std::filesystem::path& path,
                                              const std::vector<std::string>& columns);

}  // namespace megalith::data
