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
// While one digests what has come, others wait for the disk.
constexpr int64_t kReaders = 4;
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

bool VerifiedBytes::read_chunk(int64_t index, std::span<std::byte> into, std::span<std::byte> rest) const {
  int64_t offset = index * expected_->chunk_bytes;
  Digest digest;
  for (std::span<std::byte> part : {into, rest}) {
    while (!part.empty()) {
      const auto piece = part.first(std::min(part.size(), kPieceBytes));
      source_->read_at(offset, piece);
      digest.update(piece);
      offset += std::ssize(piece);
      part = part.subspan(piece.size());
    }
  }
  return digest.hex() == expected_->chunks[static_cast<size_t>(index)];
}

void VerifiedBytes::read_chunks(int64_t first, int64_t count, std::span<std::byte> into,
                                std::span<std::byte> rest) const {
  std::vector<char> is_damaged(static_cast<size_t>(count));
  std::atomic<int64_t> next = 0;
  const auto read_some = [&] {
    try {
      for (int64_t i = next++; i < count; i = next++) {
        const auto begin = static_cast<size_t>(i * expected_->chunk_bytes);
        const bool is_last = i + 1 == count;
        const auto part =
            is_last ? into.subspan(begin) : into.subspan(begin, static_cast<size_t>(chunk_size(first + i)));
        is_damaged[static_cast<size_t>(i)] = !read_chunk(first + i, part, is_last ? rest : std::span<std::byte>());
      }
    } catch (...) {
      next = count;
      throw;
    }
  };
  std::vector<std::future<void>> others;
  for (int64_t i = 1; i < std::min(kReaders, count); ++i) others.push_back(std::async(std::launch::async, read_some));
  read_some();
  for (std::future<void>& other : others) other.get();
  const auto damaged = std::find(is_damaged.begin(), is_damaged.end(), true) - is_damaged.begin();
  if (damaged == count) return;
  const int64_t begin = (first + damaged) * expected_->chunk_bytes;
  data_error("{} is damaged: bytes {} to {} do not match their digest", source_->name(), begin,
             begin + chunk_size(first + damaged));
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
