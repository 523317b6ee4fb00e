#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/hash/digest.h"
#include "core/thread_pool.h"

namespace megalith::checkpoint {

// What a file must contain: digests of its chunks, so that a part can be read and trusted alone, and one of all of it.
struct FileDigests {
  static constexpr int64_t kChunkBytes = int64_t{16} << 20;

  int64_t bytes = 0;
  std::string whole;                  // digest_of_chunks()
  int64_t chunk_bytes = kChunkBytes;  // the last chunk may be shorter
  std::vector<std::string> chunks;

  bool operator==(const FileDigests&) const = default;
};

// Of a whole file, from those of its chunks in their order.
std::string digest_of_chunks(const std::vector<std::string>& chunks);
FileDigests digests_of(std::span<const std::byte> image, ThreadPool& pool);

}  // namespace megalith::checkpoint
