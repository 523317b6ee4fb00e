#include "checkpoint/verified_file.h"

#include <algorithm>
#include <cstring>

#include "core/error.h"

namespace megalith::checkpoint {

VerifiedFile::VerifiedFile(File file, const FileDigests& expected) : file_(std::move(file)), expected_(&expected) {
  if (file_.size() != expected_->bytes) {
    data_error("{} has {} bytes, its manifest says {}", file_.path().string(), file_.size(), expected_->bytes);
  }
}

int64_t VerifiedFile::chunk_size(int64_t index) const {
  return std::min(expected_->chunk_bytes, expected_->bytes - index * expected_->chunk_bytes);
}

void VerifiedFile::read_chunk(int64_t index, std::span<std::byte> into) const {
  const int64_t begin = index * expected_->chunk_bytes;
  file_.read_at(begin, into);
  // While this chunk is digested, the next one comes.
  file_.read_ahead(begin + expected_->chunk_bytes, expected_->chunk_bytes);
  if (digest_of(into) != expected_->chunks[static_cast<size_t>(index)]) {
    data_error("{} is damaged: bytes {} to {} do not match their digest", file_.path().string(), begin,
               begin + static_cast<int64_t>(into.size()));
  }
}

std::span<const std::byte> VerifiedFile::cached_chunk(int64_t index) {
  if (cached_ != index) {
    cached_ = -1;  // stays so if the read fails
    cache_.resize(static_cast<size_t>(chunk_size(index)));
    read_chunk(index, cache_);
    cached_ = index;
  }
  return cache_;
}

void VerifiedFile::read_at(int64_t offset, std::span<std::byte> into) {
  const auto bytes = static_cast<int64_t>(into.size());
  MEGALITH_CHECK(offset >= 0 && bytes <= expected_->bytes && offset <= expected_->bytes - bytes, "bytes {} + {} of {}",
                 offset, bytes, expected_->bytes);
  while (!into.empty()) {
    const int64_t index = offset / expected_->chunk_bytes;
    const int64_t inside = offset - index * expected_->chunk_bytes;
    const auto part = into.first(std::min(into.size(), static_cast<size_t>(chunk_size(index) - inside)));
    if (static_cast<int64_t>(part.size()) == chunk_size(index) && cached_ != index) {
      read_chunk(index, part);  // a whole chunk is checked where it lands
    } else {
      std::memcpy(part.data(), cached_chunk(index).data() + inside, part.size());
    }
    into = into.subspan(part.size());
    offset += static_cast<int64_t>(part.size());
  }
}

void VerifiedFile::verify_chunk(int64_t index) {
  if (cached_ != index) cached_chunk(index);
}

}  // namespace megalith::checkpoint
