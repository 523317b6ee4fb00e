#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "core/file.h"

namespace megalith::data {

// The lines of a file, cut at LF only, in memory bounded by the longest line.
class LineReader {
 public:
  explicit LineReader(const std::filesystem::path& path);

  // The next line without its LF, or nothing at the end. Valid until the next call.
  std::optional<std::string_view> next();

  int64_t line_number() const { return line_; }  // of the line last returned, from 1
  int64_t bytes_read() const { return consumed_; }

 private:
  bool refill();

  File file_;
  int64_t size_;
  int64_t read_at_ = 0;   // what of the file has come into the buffer
  int64_t consumed_ = 0;  // what of it has been returned
  int64_t line_ = 0;
  std::string buffer_;
  size_t begin_ = 0;
};

}  // namespace megalith::data
