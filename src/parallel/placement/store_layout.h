#pragma once

#include <vector>

#include "parallel/placement/placement.h"

namespace megalith::parallel {

// Neighbouring chunks, of which one is used while the other arrives, are never in the same slot.
constexpr int64_t kChunkSlots = 2;
constexpr int64_t slot_of(int64_t chunk) {
  return chunk % kChunkSlots;
}

// Where each slab lies in a rank's memory of weights and of gradients: bytes from the beginning, aligned as arenas
// align. Pure arithmetic, so that a plan knows the exact sizes.
//
// Where weights are sharded, the whole weights and gradients of a chunk lie in a slot that it shares with other chunks.
// Elsewhere a shard is a part of the whole.
class StoreLayout {
 public:
  struct SlabOffsets {
    int64_t weights = 0;
    int64_t weight_shard = 0;
    int64_t gradients = 0;
    int64_t gradient_shard = 0;
  };

  StoreLayout(const Placement& placement, DType compute, int64_t replica);

  int64_t weight_bytes() const { return weight_bytes_; }
  int64_t gradient_bytes() const { return gradient_bytes_; }
  const SlabOffsets& offsets(size_t bucket, size_t slab) const { return offsets_[bucket][slab]; }
  // The gradients of a chunk that are summed from zero, which lie together.
  const Interval& summed_gradients(int64_t chunk) const { return summed_gradients_[static_cast<size_t>(chunk)]; }

 private:
  void place_weights(const Placement& placement, DType compute, int64_t replica);
  void place_gradients(const Placement& placement, DType main, int64_t replica);

  std::vector<std::vector<SlabOffsets>> offsets_;
  std::vector<Interval> summed_gradients_;
  int64_t weight_bytes_ = 0;
  int64_t gradient_bytes_ = 0;
};

}  // namespace megalith::parallel
