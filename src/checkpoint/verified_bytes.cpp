#include "checkpoint/verified_bytes.h"

#include <algorithm>
#include <cstring>

#include "core/error.h"

namespace megalith::checkpoint {

namespace {
// Small enough to be digested while it is still near the processor.
constexpr size_t kPieceBytes = size_t{4} << 20;
}  // namespace

VerifiedBytes::VerifiedBytes(std::unique_ptr<ByteSource> source, const FileDigests& expected)
    : source_(std::move(source)), expected_(&expected) {
  if (source_->size() != expected_->bytes) {
    data_error("{} has {} bytes, its manifest says {}", source_->name(), source_->size(), expected_->bytes);
  }
}

int64_t VerifiedBytes::chunk_size(int64_t index) const {
  return std::min(expected_->chunk_bytes, expected_->bytes - index * expected_->chunk_bytes);
}

void VerifiedBytes::read_chunk(int64_t index, std::span<std::byte> into) {
  const int64_t begin = index * expected_->chunk_bytes;
  Digest digest;
  for (size_t at = 0; at < into.size(); at += kPieceBytes) {
    const auto piece = into.subspan(at, std::min(kPieceBytes, into.size() - at));
    source_->read_at(begin + static_cast<int64_t>(at), piece);
    digest.update(piece);
  }
  if (digest.hex() != expected_->chunks[static_cast<size_t>(index)]) {
    data_error("{} is damaged: bytes {} to {} do not match their digest", source_->name(), begin,
               begin + static_cast<int64_t>(into.size()));
  }
}

std::span<const std::byte> VerifiedBytes::cached_chunk(int64_t index) {
  if (cached_ != index) {
    cached_ = -1;  // stays so if the read fails
    cache_.resize(static_cast<size_t>(chunk_size(index)));
    read_chunk(index, cache_);
    cached_ = index;
  }
  return cache_;
}

void VerifiedBytes::read_at(int64_t offset, std::span<std::byte> into) {
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

void VerifiedBytes::verify_chunk(int64_t index) {
  if (cached_ != index) cached_chunk(index);
}

}  // namespace megalith::checkpoint
