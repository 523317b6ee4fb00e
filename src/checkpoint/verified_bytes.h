#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "checkpoint/byte_source.h"
#include "checkpoint/digest.h"

namespace megalith::checkpoint {

// A shard's bytes, each checked against its chunk's digest before it is handed out, in memory, so that nothing can
// change between the check and the use. Cheap when read front to back: it keeps what nobody has asked for yet of the
// last chunk, and several threads read and digest the chunks of a long stretch. Not thread-safe.
class VerifiedBytes {
 public:
  // Throws a data error if they are not as many as they should be. `expected` must outlive it.
  VerifiedBytes(std::unique_ptr<ByteSource> source, const FileDigests& expected);

  const std::string& name() const { return source_->name(); }
  void read_at(int64_t offset, std::span<std::byte> into);
  void verify_chunk(int64_t index);

 private:
  // Reads `count` chunks from `first` on, into one room and the rest of the last into the other.
  void read_chunks(int64_t first, int64_t count, std::span<std::byte> into, std::span<std::byte> rest) const;
  // False: it is damaged.
  bool read_chunk(int64_t index, std::span<std::byte> into, std::span<std::byte> rest) const;
  // From the first byte of a chunk on. The number of bytes that have come: all, or up to a chunk that is cached.
  int64_t read_from_chunk(int64_t first, std::span<std::byte> into);
  void fill_cache(int64_t index);
  std::span<std::byte> make_cache(int64_t index, int64_t without);
  int64_t chunk_size(int64_t index) const;

  std::unique_ptr<ByteSource> source_;
  const FileDigests* expected_;
  std::vector<std::byte> cache_;  // of a chunk, from some byte to its end
  int64_t cached_ = -1;
  int64_t cache_begin_ = 0;
};

}  // namespace megalith::checkpoint
