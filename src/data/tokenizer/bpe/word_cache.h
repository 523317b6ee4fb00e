#pragma once

#include <sys/mman.h>

#include <array>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <span>

namespace megalith::data {

namespace detail {
// Row n keeps the first n of 16 bytes.
constexpr std::array<std::array<uint64_t, 2>, 16> make_byte_masks() {
  std::array<std::array<uint64_t, 2>, 16> masks{};
  for (size_t length = 0; length < masks.size(); ++length) {
    for (size_t i = 0; i < length; ++i) masks[length][i / 8] |= uint64_t{0xFF} << (i % 8 * 8);
  }
  return masks;
}
inline constexpr auto kByteMasks = make_byte_masks();
}  // namespace detail

// Remembers what short pieces became. Of fixed size: a new piece replaces the older of the two that share its place. On
// text of the web 99 of 100 pieces are found here, so a lookup touches one cache line, asked for ahead of time.
class WordCache {
 public:
  static constexpr size_t kLongestPiece = 15;
  static constexpr size_t kMostIds = 3;
  static constexpr size_t kBuckets = size_t{1} << 18;  // of 64 bytes

  // The bytes of a piece, zeros behind them, and its length in the last byte; all zero: too long for the cache.
  struct Key {
    uint64_t low = 0;
    uint64_t high = 0;
    bool operator==(const Key&) const = default;
  };
  struct alignas(32) Entry {
    Key key;
    std::array<int32_t, kMostIds> ids;
    uint32_t count;
  };

  WordCache() : buckets_(allocate()) {}

  // `readable` bytes from `text` on may be read, at least `length` of them.
  static Key key_of(const char* text, size_t length, size_t readable) {
    if (length > kLongestPiece) return {};
    Key key;
    if (readable >= sizeof key) [[likely]] {
      std::memcpy(&key, text, sizeof key);
    } else {
      std::memcpy(&key, text, length);
    }
    key.low &= detail::kByteMasks[length][0];
    key.high &= detail::kByteMasks[length][1];
    key.high |= static_cast<uint64_t>(length) << 56;
    return key;
  }

  static size_t place_of(const Key& key) {
    const uint64_t mixed = (key.low ^ key.high >> 29) * 0x9E3779B97F4A7C15u + key.high * 0xC2B2AE3D27D4EB4Fu;
    return (mixed ^ mixed >> 31) * 0xD6E8FEB86659FD93u >> (64 - kPlaceBits);
  }

  void prefetch(size_t place) const { __builtin_prefetch(&buckets_[place]); }

  // nullptr: not here.
  const Entry* find(const Key& key, size_t place) const {
    const Bucket& bucket = buckets_[place];
    if (bucket.entries[0].key == key) return &bucket.entries[0];
    if (bucket.entries[1].key == key) return &bucket.entries[1];
    return nullptr;
  }

  // At most kMostIds ids.
  void insert(const Key& key, size_t place, std::span<const int32_t> ids) {
    Bucket& bucket = buckets_[place];
    bucket.entries[1] = bucket.entries[0];
    Entry& entry = bucket.entries[0];
    entry.key = key;
    entry.count = static_cast<uint32_t>(ids.size());
    std::copy(ids.begin(), ids.end(), entry.ids.begin());
  }

 private:
  static constexpr int kPlaceBits = 18;
  static_assert(kBuckets == size_t{1} << kPlaceBits);
  struct alignas(64) Bucket {
    std::array<Entry, 2> entries;
  };
  struct Free {
    void operator()(Bucket* buckets) const { std::free(buckets); }
  };

  // On huge pages where the system gives them: a lookup is a random access, and the advice must come before the first
  // touch.
  static Bucket* allocate() {
    constexpr size_t kBytes = kBuckets * sizeof(Bucket);
    void* memory = std::aligned_alloc(size_t{2} << 20, kBytes);
    if (memory == nullptr) throw std::bad_alloc();
    ::madvise(memory, kBytes, MADV_HUGEPAGE);
    std::memset(memory, 0, kBytes);
    return static_cast<Bucket*>(memory);
  }

  std::unique_ptr<Bucket[], Free> buckets_;
};

}  // namespace megalith::data
