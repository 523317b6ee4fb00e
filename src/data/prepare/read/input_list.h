#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "data/prepare/read/batch_reader.h"

namespace megalith::data {

struct InputFile {
  std::filesystem::path path;
  int64_t size = 0;
  int64_t modified_ns = 0;  // since 1970

  bool operator==(const InputFile&) const = default;
};

// Numbers within names compare as numbers: "chunk2" comes before "chunk10".
bool natural_less(std::string_view a, std::string_view b);

// Files and glob patterns to files. `sort_all` puts all of them into natural order; otherwise the matches of each
// pattern are sorted and the patterns stay in their order. User errors: nothing matches, a file is named twice (under
// whatever name), something is no regular file.
std::vector<InputFile> list_inputs(const std::vector<std::string>& patterns, bool sort_all);

// Data error if the file is no longer what it was when the list was made.
void check_unchanged(const InputFile& file);

enum class InputFormat {
  by_name,  // .jsonl and .json: JSON lines; .txt: text; both also under .gz and .zst; .parquet; anything else is
            // refused
  text,
  json_lines,
  parquet,
};

enum class TextDocuments {
  whole_file,
  blank_lines,  // documents are separated by one or more lines of nothing but white space
};

// The rows of Parquet files become JSON lines.
Cut cut_of(const std::filesystem::path& path, InputFormat format, TextDocuments text);
bool is_parquet(const std::filesystem::path& path, InputFormat format);

// The name without .gz or .zst.
std::filesystem::path uncompressed_name(const std::filesystem::path& path);

}  // namespace megalith::data
