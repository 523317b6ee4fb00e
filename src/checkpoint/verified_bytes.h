#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "checkpoint/byte_source.h"
#include "checkpoint/digest.h"

namespace megalith::checkpoint {

// A shard's bytes, each checked against its chunk's digest before it is handed out, in memory, so that nothing can
// change between the check and the use. Cheap when read front to back: it keeps the last chunk, and digests on another
// thread what has come while more is on its way. Not thread-safe.
class VerifiedBytes {
 public:
  // Throws a data error if they are not as many as they should be. `expected` must outlive it.
  VerifiedBytes(std::unique_ptr<ByteSource> source, const FileDigests& expected);

  const std::string& name() const { return source_->name(); }
  void read_at(int64_t offset, std::span<std::byte> into);
  void verify_chunk(int64_t index);

 private:
  // One span for each chunk from `first` on.
  void read_chunks(int64_t first, const std::vector<std::span<std::byte>>& into);
  std::span<std::byte> make_cache(int64_t index);
  int64_t chunk_size(int64_t index) const;

  std::unique_ptr<ByteSource> source_;
  const FileDigests* expected_;
  std::vector<std::byte> cache_;
  int64_t cached_ = -1;
};

}  // namespace megalith::checkpoint
