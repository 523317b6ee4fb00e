#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "checkpoint/digest.h"
#include "core/file.h"

namespace megalith::checkpoint {

// A file whose every byte is checked against its chunk's digest before it is handed out, in memory, so that nothing can
// change between the check and the use. Cheap when read front to back: it keeps the last chunk. Not thread-safe.
class VerifiedFile {
 public:
  // Throws a data error if the file does not have the right size. `expected` must outlive it.
  VerifiedFile(File file, const FileDigests& expected);

  const std::filesystem::path& path() const { return file_.path(); }
  void read_at(int64_t offset, std::span<std::byte> into);
  void verify_chunk(int64_t index);

 private:
  void read_chunk(int64_t index, std::span<std::byte> into) const;
  std::span<const std::byte> cached_chunk(int64_t index);
  int64_t chunk_size(int64_t index) const;

  File file_;
  const FileDigests* expected_;
  std::vector<std::byte> cache_;
  int64_t cached_ = -1;
};

}  // namespace megalith::checkpoint
