#include "checkpoint/format/verified_bytes.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <future>

#include "core/error.h"

namespace megalith::checkpoint {

namespace {
// While one digests what has come, others wait for the disk.
constexpr int64_t kOtherReaders = 3;
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

void VerifiedBytes::read_chunk(int64_t index, std::span<std::byte> into) const {
  const int64_t begin = index * expected_->chunk_bytes;
  source_->read_at(begin, into);
  if (digest_of(into) == expected_->chunks[static_cast<size_t>(index)]) return;
  data_error("{} is damaged: bytes {} to {} do not match their digest", source_->name(), begin,
             begin + std::ssize(into));
}

void VerifiedBytes::fill_cache(int64_t index) {
  cached_ = -1;  // stays so if the read fails
  cache_.resize(static_cast<size_t>(chunk_size(index)));
  read_chunk(index, cache_);
  cached_ = index;
}

void VerifiedBytes::read_at(int64_t offset, std::span<std::byte> into) {
  const auto bytes = static_cast<int64_t>(into.size());
  MEGALITH_CHECK(offset >= 0 && bytes <= expected_->bytes && offset <= expected_->bytes - bytes, "bytes {} + {} of {}",
                 offset, bytes, expected_->bytes);
  if (into.empty()) return;
  const int64_t chunk = expected_->chunk_bytes;
  const int64_t end = offset + bytes;
  // Of the chunks at both ends only a part may be wanted: it comes through the cache.
  int64_t first = offset / chunk;
  int64_t head_end = offset;
  if (cached_ == first || offset % chunk != 0) {
    if (cached_ != first) fill_cache(first);
    head_end = std::min(end, ++first * chunk);
  }
  const int64_t last = end == expected_->bytes ? std::ssize(expected_->chunks) : end / chunk;
  const auto copy_from_cache = [&](int64_t from, int64_t to) {
    std::memcpy(into.data() + (from - offset), cache_.data() + (from - cached_ * chunk),
                static_cast<size_t>(to - from));
  };
  const auto read_ends = [&] {
    if (head_end > offset) copy_from_cache(offset, head_end);
    if (head_end == end || last * chunk >= end) return;
    fill_cache(last);
    copy_from_cache(last * chunk, end);
  };
  const auto room_of = [&](int64_t index) {
    return into.subspan(static_cast<size_t>(index * chunk - offset), static_cast<size_t>(chunk_size(index)));
  };
  read_chunks(
      first, last, [&] { return room_of; }, read_ends);
}

// Several threads read and digest the chunks [first, last); this one does something else before it helps them.
void VerifiedBytes::read_chunks(int64_t first, int64_t last, const std::function<RoomOf()>& rooms_of_one,
                                const std::function<void()>& before) const {
  std::atomic<int64_t> next = first;
  const auto or_end_all = [&](const auto& work) {
    try {
      work();
    } catch (...) {
      next = last;
      throw;
    }
  };
  const auto read_some = [&] {
    const RoomOf room_of = rooms_of_one();
    for (int64_t index = next++; index < last; index = next++) read_chunk(index, room_of(index));
  };
  std::vector<std::future<void>> others;
  for (int64_t i = 0; i < std::min(kOtherReaders, last - first); ++i) {
    others.push_back(std::async(std::launch::async, [&] { or_end_all(read_some); }));
  }
  or_end_all([&] {
    before();
    read_some();
  });
  for (std::future<void>& other : others) other.get();
}

void VerifiedBytes::verify(int64_t first, int64_t last) const {
  const auto own_room = [this] {
    return [this, room = std::vector<std::byte>()](int64_t index) mutable {
      room.resize(static_cast<size_t>(chunk_size(index)));
      return std::span<std::byte>(room);
    };
  };
  read_chunks(first, last, own_room, [] {});
}

}  // namespace megalith::checkpoint
