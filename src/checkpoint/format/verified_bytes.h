#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "checkpoint/format/byte_source.h"
#include "checkpoint/format/file_digests.h"

namespace megalith::checkpoint {

// A shard's bytes, each checked against its chunk's digest before it is handed out, in memory, so that nothing can
// change between the check and the use. Cheap when read front to back: it keeps the last chunk of which only a part was
// wanted, and several threads read and digest the chunks of a long stretch. Not thread-safe.
class VerifiedBytes {
 public:
  // Throws a data error if they are not as many as they should be. `expected` must outlive it.
  VerifiedBytes(std::unique_ptr<ByteSource> source, const FileDigests& expected);

  const std::string& name() const { return source_->name(); }
  void read_at(int64_t offset, std::span<std::byte> into);
  // The chunks [first, last).
  void verify(int64_t first, int64_t last) const;

 private:
  // Where a reader may put a chunk; each of them asks for its own.
  using RoomOf = std::function<std::span<std::byte>(int64_t chunk)>;
  void read_chunks(int64_t first, int64_t last, const std::function<RoomOf()>& rooms_of_one,
                   const std::function<void()>& before) const;
  void read_chunk(int64_t index, std::span<std::byte> into) const;
  void fill_cache(int64_t index);
  int64_t chunk_size(int64_t index) const;

  std::unique_ptr<ByteSource> source_;
  const FileDigests* expected_;
  std::vector<std::byte> cache_;  // a chunk
  int64_t cached_ = -1;
};

}  // namespace megalith::checkpoint
