#pragma once

#include <bit>
#include <cstdint>
#include <vector>

namespace megalith::data {

// What two neighbouring tokens merge to: rank (smaller merges first) above the resulting id, so that the least value
// is the next merge.
using Merge = uint64_t;
inline constexpr Merge kNoMerge = ~uint64_t{0};
constexpr Merge make_merge(uint32_t rank, int32_t id) {
  return static_cast<uint64_t>(rank) << 32 | static_cast<uint32_t>(id);
}
constexpr uint32_t rank_of(Merge merge) {
  return static_cast<uint32_t>(merge >> 32);
}
constexpr int32_t id_of(Merge merge) {
  return static_cast<int32_t>(merge & 0xFFFFFFFF);
}

// Merges by their two ids; open addressing, at most half full. Most questions are about pairs that do not merge: a
// filter that fits a core's own cache answers nearly all of them.
class PairTable {
 public:
  explicit PairTable(size_t pairs)
      : slots_(std::bit_ceil(2 * pairs + 16)),
        filter_(kFilterBits / 64, 0),
        shift_(64 - std::countr_zero(slots_.size())) {}

  // False if the pair is there already.
  bool insert(int32_t left, int32_t right, Merge merge) {
    const uint64_t key = key_of(left, right), hash = hash_of(key);
    Slot& slot = slots_[place(key, hash)];
    if (slot.merge != kNoMerge) return false;
    slot = {key, merge};
    filter_[filter_bit(hash) / 64] |= uint64_t{1} << filter_bit(hash) % 64;
    return true;
  }
  Merge find(int32_t left, int32_t right) const {
    const uint64_t key = key_of(left, right), hash = hash_of(key);
    if (!(filter_[filter_bit(hash) / 64] >> filter_bit(hash) % 64 & 1)) return kNoMerge;
    return slots_[place(key, hash)].merge;
  }

 private:
  static constexpr size_t kFilterBits = size_t{1} << 22;
  struct Slot {
    uint64_t key = 0;
    Merge merge = kNoMerge;
  };

  static uint64_t key_of(int32_t left, int32_t right) {
    return static_cast<uint64_t>(static_cast<uint32_t>(left)) << 32 | static_cast<uint32_t>(right);
  }
  static uint64_t hash_of(uint64_t key) {
    const uint64_t mixed = key * 0x9E3779B97F4A7C15u;
    return (mixed ^ mixed >> 32) * 0xD6E8FEB86659FD93u;
  }
  static size_t filter_bit(uint64_t hash) { return hash >> 20 & (kFilterBits - 1); }
  size_t place(uint64_t key, uint64_t hash) const {
    size_t at = hash >> shift_;
    while (slots_[at].merge != kNoMerge && slots_[at].key != key) at = (at + 1) & (slots_.size() - 1);
    return at;
  }

  std::vector<Slot> slots_;
  std::vector<uint64_t> filter_;
  int shift_;
};

}  // namespace megalith::data
