#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>

#include "core/file.h"

namespace megalith::data {

// A file read once, front to back, by pread in large blocks: a mapping would stall on network file systems. The kernel
// is told to read ahead and to forget what is behind.
class FileBlocks {
 public:
  FileBlocks(const std::filesystem::path& path, int64_t block_bytes);

  // The next block, empty at the end. Valid until the next call.
  std::span<const char> next();
  // The same into memory of the caller; how many bytes came.
  size_t read(std::span<char> into);

  const std::filesystem::path& path() const { return file_.path(); }
  int64_t offset() const { return offset_; }  // of what comes next

 private:
  File file_;
  int64_t block_bytes_;
  int64_t offset_ = 0;
  int64_t forgotten_ = 0;
  std::unique_ptr<char[]> block_;
};

}  // namespace megalith::data
