#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>
#include <vector>

#include "core/hash/digest.h"

namespace megalith::data {

// Remembers what became of the pieces that WordCache has no room for: longer ones, and those of many ids. A new piece
// replaces the one at its place.
class PhraseCache {
 public:
  static constexpr size_t kLongestPiece = 62;
  static constexpr size_t kMostIds = 16;
  static constexpr size_t kEntries = size_t{1} << 15;  // of 128 bytes

  PhraseCache() : entries_(kEntries) {}

  static bool takes(std::string_view piece) { return piece.size() <= kLongestPiece; }
  static size_t place_of(std::string_view piece) { return hash64(piece) % kEntries; }

  // Empty: not here.
  std::span<const int32_t> find(std::string_view piece, size_t place) const {
    const Entry& entry = entries_[place];
    if (entry.length != piece.size() || std::memcmp(entry.bytes.data(), piece.data(), piece.size()) != 0) return {};
    return {entry.ids.data(), entry.count};
  }

  void insert(std::string_view piece, size_t place, std::span<const int32_t> ids) {
    if (ids.size() > kMostIds) return;
    Entry& entry = entries_[place];
    entry.length = static_cast<uint8_t>(piece.size());
    entry.count = static_cast<uint8_t>(ids.size());
    std::copy(piece.begin(), piece.end(), entry.bytes.begin());
    std::copy(ids.begin(), ids.end(), entry.ids.begin());
  }

 private:
  struct alignas(128) Entry {
    uint8_t length = 0;
    uint8_t count = 0;
    std::array<char, kLongestPiece> bytes;
    std::array<int32_t, kMostIds> ids;
  };

  std::vector<Entry> entries_;
};

}  // namespace megalith::data
