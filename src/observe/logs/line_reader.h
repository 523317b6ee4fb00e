#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "core/file.h"

namespace megalith::observe {

// The lines of a log of any size, through a buffer of fixed size. A carriage return ends a line too, since progress
// bars rewrite theirs with it. Empty lines are left out; a line too long for the buffer is left out and counted.
class LineReader {
 public:
  static constexpr size_t kLongestLine = size_t{4} << 20;

  explicit LineReader(const std::filesystem::path& path);

  // Without its end, valid until the next call; nothing at the end of the file. The last line may lack its end.
  std::optional<std::string_view> next();

  int64_t overlong_lines() const { return overlong_; }

 private:
  bool refill();

  File file_;
  std::string buffer_;
  size_t begin_ = 0;  // of what is not given out yet
  size_t end_ = 0;
  bool at_end_ = false;
  bool skipping_ = false;  // inside a line that is too long
  int64_t overlong_ = 0;
};

}  // namespace megalith::observe
