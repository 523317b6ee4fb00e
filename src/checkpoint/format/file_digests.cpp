#include "checkpoint/format/file_digests.h"

#include <fmt/ranges.h>

#include <algorithm>

namespace megalith::checkpoint {

std::string digest_of_chunks(const std::vector<std::string>& chunks) {
  return digest_of(fmt::format("{}", fmt::join(chunks, "")));
}

FileDigests digests_of(std::span<const std::byte> image, ThreadPool& pool) {
  FileDigests digests{.bytes = static_cast<int64_t>(image.size()), .whole = {}, .chunks = {}};
  const auto chunk_bytes = static_cast<size_t>(digests.chunk_bytes);
  digests.chunks.resize((image.size() + chunk_bytes - 1) / chunk_bytes);
  pool.run(std::ssize(digests.chunks), [&](int64_t chunk) {
    const auto rest = image.subspan(static_cast<size_t>(chunk) * chunk_bytes);
    digests.chunks[static_cast<size_t>(chunk)] = digest_of(rest.first(std::min(rest.size(), chunk_bytes)));
  });
  digests.whole = digest_of_chunks(digests.chunks);
  return digests;
}

}  // namespace megalith::checkpoint
