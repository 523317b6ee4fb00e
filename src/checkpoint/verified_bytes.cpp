#include "checkpoint/verified_bytes.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <future>

#include "core/error.h"

namespace megalith::checkpoint {

namespace {

// Small enough to be digested while it is still near the processors.
constexpr size_t kPieceBytes = size_t{4} << 20;

struct Piece {
  std::span<std::byte> bytes;
  bool ends_chunk;
};

std::vector<Piece> pieces_of(const std::vector<std::span<std::byte>>& chunks) {
  std::vector<Piece> pieces;
  for (std::span<std::byte> left : chunks) {
    while (!left.empty()) {
      const auto bytes = left.first(std::min(left.size(), kPieceBytes));
      left = left.subspan(bytes.size());
      pieces.push_back({bytes, left.empty()});
    }
  }
  return pieces;
}

// How many pieces have come. A reader that fails ends the count.
class Arrivals {
 public:
  void add_one() { set(count_ + 1); }
  void end() { set(kEnd); }
  // False: it will never come.
  bool wait_for(size_t piece) const {
    size_t count = count_;
    for (; count <= piece; count = count_) count_.wait(count);
    return count != kEnd;
  }

 private:
  static constexpr size_t kEnd = ~size_t{0};
  void set(size_t count) {
    count_ = count;
    count_.notify_one();
  }
  std::atomic<size_t> count_ = 0;
};

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

void VerifiedBytes::read_chunks(int64_t first, const std::vector<std::span<std::byte>>& into) {
  const std::vector<Piece> pieces = pieces_of(into);
  Arrivals arrivals;
  // The index of the first chunk that is damaged, or that after the last.
  const auto check = [&] {
    int64_t chunk = first;
    Digest digest;
    for (size_t i = 0; i < pieces.size() && arrivals.wait_for(i); ++i) {
      digest.update(pieces[i].bytes);
      if (!pieces[i].ends_chunk) continue;
      if (digest.hex() != expected_->chunks[static_cast<size_t>(chunk)]) break;
      digest.reset();
      ++chunk;
    }
    return chunk;
  };
  auto checking = std::async(pieces.size() > 1 ? std::launch::async : std::launch::deferred, check);
  int64_t offset = first * expected_->chunk_bytes;
  try {
    for (const Piece& piece : pieces) {
      source_->read_at(offset, piece.bytes);
      offset += static_cast<int64_t>(piece.bytes.size());
      arrivals.add_one();
    }
  } catch (...) {
    arrivals.end();
    throw;
  }
  const int64_t verified = checking.get();
  if (verified == first + std::ssize(into)) return;
  const int64_t begin = verified * expected_->chunk_bytes;
  data_error("{} is damaged: bytes {} to {} do not match their digest", source_->name(), begin,
             begin + chunk_size(verified));
}

// Room for a chunk that is about to be read.
std::span<std::byte> VerifiedBytes::make_cache(int64_t index) {
  cached_ = -1;  // stays so if the read fails
  cache_.resize(static_cast<size_t>(chunk_size(index)));
  return cache_;
}

void VerifiedBytes::read_at(int64_t offset, std::span<std::byte> into) {
  const auto bytes = static_cast<int64_t>(into.size());
  MEGALITH_CHECK(offset >= 0 && bytes <= expected_->bytes && offset <= expected_->bytes - bytes, "bytes {} + {} of {}",
                 offset, bytes, expected_->bytes);
  while (!into.empty()) {
    const int64_t first = offset / expected_->chunk_bytes;
    const int64_t inside = offset - first * expected_->chunk_bytes;
    if (inside > 0 || cached_ == first) {
      if (cached_ != first) verify_chunk(first);
      const auto part = into.first(std::min(into.size(), static_cast<size_t>(chunk_size(first) - inside)));
      std::memcpy(part.data(), cache_.data() + inside, part.size());
      into = into.subspan(part.size());
      offset += static_cast<int64_t>(part.size());
      continue;
    }
    // Whole chunks are checked where they land; one of which only a part is wanted, in the cache.
    std::vector<std::span<std::byte>> chunks;
    int64_t index = first;
    auto left = into;
    for (; !left.empty() && std::ssize(left) >= chunk_size(index) && index != cached_; ++index) {
      chunks.push_back(left.first(static_cast<size_t>(chunk_size(index))));
      left = left.subspan(chunks.back().size());
    }
    const bool ends_in_cache = !left.empty() && index != cached_;
    if (ends_in_cache) chunks.push_back(make_cache(index));
    read_chunks(first, chunks);
    if (ends_in_cache) cached_ = index;
    offset += static_cast<int64_t>(into.size() - left.size());
    into = left;
  }
}

void VerifiedBytes::verify_chunk(int64_t index) {
  if (cached_ == index) return;
  read_chunks(index, {make_cache(index)});
  cached_ = index;
}

}  // namespace megalith::checkpoint
