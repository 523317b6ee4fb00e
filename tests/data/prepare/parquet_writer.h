#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace megalith::data {

struct ParquetColumn {
  std::string name;
  std::vector<std::optional<std::string>> values;  // nothing: null
};

struct ParquetLayout {
  std::string compression = "zstd";
  std::string type = "string";  // of all columns: string, large_string, dictionary or binary
  bool dictionary_pages = true;
  bool delta_encoded = false;  // where there is no dictionary
  bool second_pages = false;   // pages of version 2
  int64_t rows_per_group = 10;
  int64_t page_bytes = int64_t{1} << 20;
};

void write_parquet(const std::filesystem::path& path, const std::vector<ParquetColumn>& columns,
                   const ParquetLayout& layout = {});

// No row groups: one column "text".
void write_parquet_without_row_groups(const std::filesystem::path& path);

// One row of columns that are not text: id (int64), raw (binary), tags (a list of strings), meta (a struct with a
// string "source").
void write_parquet_without_text(const std::filesystem::path& path);

}  // namespace megalith::data
