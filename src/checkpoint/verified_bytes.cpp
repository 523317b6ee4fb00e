#include "checkpoint/verified_bytes.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <future>

#include "core/error.h"

namespace megalith::checkpoint {

namespace {

// Small enough to be digested while it is still near the processors.
constexpr size_t kPieceBytes = size_t{2} << 20;

struct Piece {
  std::span<std::byte> bytes;
  bool ends_chunk;
};

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

void VerifiedBytes::read_chunks(int64_t first, int64_t count, std::span<std::byte> into, std::span<std::byte> rest) {
  std::vector<Piece> pieces;
  int64_t left = chunk_size(first);
  int64_t chunk_of_piece = first;
  for (std::span<std::byte> part : {into, rest}) {
    while (!part.empty()) {
      const auto bytes = part.first(std::min({part.size(), static_cast<size_t>(left), kPieceBytes}));
      part = part.subspan(bytes.size());
      left -= std::ssize(bytes);
      pieces.push_back({bytes, left == 0});
      if (left == 0 && ++chunk_of_piece < first + count) left = chunk_size(chunk_of_piece);
    }
  }
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
  if (verified == first + count) return;
  const int64_t begin = verified * expected_->chunk_bytes;
  data_error("{} is damaged: bytes {} to {} do not match their digest", source_->name(), begin,
             begin + chunk_size(verified));
}

// Room for what comes after the first `without` bytes of a chunk that is about to be read.
std::span<std::byte> VerifiedBytes::make_cache(int64_t index, int64_t without) {
  cached_ = -1;  // stays so if the read fails
  cache_begin_ = without;
  cache_.resize(static_cast<size_t>(chunk_size(index) - without));
  return cache_;
}

void VerifiedBytes::read_at(int64_t offset, std::span<std::byte> into) {
  const auto bytes = static_cast<int64_t>(into.size());
  MEGALITH_CHECK(offset >= 0 && bytes <= expected_->bytes && offset <= expected_->bytes - bytes, "bytes {} + {} of {}",
                 offset, bytes, expected_->bytes);
  while (!into.empty()) {
    const int64_t first = offset / expected_->chunk_bytes;
    const int64_t inside = offset - first * expected_->chunk_bytes;
    const bool is_cached = cached_ == first && inside >= cache_begin_;
    int64_t taken = 0;
    if (is_cached || inside > 0) {
      if (!is_cached) fill_cache(first);
      taken = std::min(std::ssize(into), chunk_size(first) - inside);
      std::memcpy(into.data(), cache_.data() + (inside - cache_begin_), static_cast<size_t>(taken));
    } else {
      taken = read_from_chunk(first, into);
    }
    into = into.subspan(static_cast<size_t>(taken));
    offset += taken;
  }
}

// Chunks are checked where they land; what is not wanted of the last lands in the cache.
int64_t VerifiedBytes::read_from_chunk(int64_t first, std::span<std::byte> into) {
  int64_t index = first;
  int64_t end = 0;
  const int64_t whole_in_cache = cache_begin_ == 0 ? cached_ : -1;
  for (; end < std::ssize(into) && index != whole_in_cache; ++index) end += chunk_size(index);
  const int64_t taken = std::min(end, std::ssize(into));
  const int64_t last = index - 1;
  std::span<std::byte> rest;
  if (taken < end) rest = make_cache(last, chunk_size(last) - (end - taken));
  read_chunks(first, index - first, into.first(static_cast<size_t>(taken)), rest);
  if (taken < end) cached_ = last;
  return taken;
}

void VerifiedBytes::fill_cache(int64_t index) {
  read_chunks(index, 1, {}, make_cache(index, 0));
  cached_ = index;
}

void VerifiedBytes::verify_chunk(int64_t index) {
  if (cached_ != index) fill_cache(index);
}

}  // namespace megalith::checkpoint
