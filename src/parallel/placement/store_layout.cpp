#include "parallel/placement/store_layout.h"

#include "core/arena.h"

namespace megalith::parallel {

namespace {

class Cursor {
 public:
  Cursor(DType dtype, int64_t begin) : dtype_(dtype), end_(begin) {}

  int64_t take(int64_t elements) {
    const int64_t begin = end_;
    end_ += Arena::footprint(dtype_, elements);
    return begin;
  }
  int64_t end() const { return end_; }
  void go_to(int64_t end) { end_ = end; }

 private:
  DType dtype_;
  int64_t end_;
};

// visit(bucket index, bucket, slab index, slab), in the order of forward.
template <class Visit>
void for_each_slab(const Placement& placement, const Visit& visit) {
  const std::vector<Bucket>& buckets = placement.buckets();
  for (size_t b = buckets.size(); b-- > 0;) {
    for (size_t s = 0; s < buckets[b].slabs.size(); ++s) visit(b, buckets[b], s, buckets[b].slabs[s]);
  }
}

// place(chunk) for each chunk whose whole tensors are not resident, all of a slot from the same beginning.
template <class Place>
void fill_slots(const Placement& placement, Cursor& cursor, const Place& place) {
  for (int64_t slot = 0; slot < std::min(kChunkSlots, placement.chunks()); ++slot) {
    const int64_t begin = cursor.end();
    int64_t largest = begin;
    for (int64_t chunk = slot; chunk < placement.chunks(); chunk += kChunkSlots) {
      cursor.go_to(begin);
      place(chunk);
      largest = std::max(largest, cursor.end());
    }
    cursor.go_to(largest);
  }
}

int64_t shard_elements(const Placement& placement, const Slab& slab) {
  return slab.elements() / placement.shards();
}

int64_t offset_of_shard(const Placement& placement, const Slab& slab, int64_t replica, DType dtype) {
  return placement.shard_rows(slab, replica).begin * slab.width * size_of(dtype);
}

}  // namespace

StoreLayout::StoreLayout(const Placement& placement, DType compute, int64_t replica)
    : summed_gradients_(static_cast<size_t>(placement.chunks())) {
  for (const Bucket& bucket : placement.buckets()) offsets_.emplace_back(bucket.slabs.size());
  place_weights(placement, compute, replica);
  place_gradients(placement, main_dtype(compute), replica);
}

void StoreLayout::place_weights(const Placement& placement, DType compute, int64_t replica) {
  Cursor cursor(compute, 0);
  for_each_slab(placement, [&](size_t b, const Bucket& bucket, size_t s, const Slab& slab) {
    SlabOffsets& offsets = offsets_[b][s];
    if (bucket.is_resident) {
      offsets.weights = cursor.take(slab.elements());
      offsets.weight_shard = offsets.weights + offset_of_shard(placement, slab, replica, compute);
    } else {
      offsets.weight_shard = cursor.take(shard_elements(placement, slab));
    }
  });
  fill_slots(placement, cursor, [&](int64_t chunk) {
    for_each_slab(placement, [&](size_t b, const Bucket& bucket, size_t s, const Slab& slab) {
      if (!bucket.is_resident && bucket.chunk == chunk) offsets_[b][s].weights = cursor.take(slab.elements());
    });
  });
  weight_bytes_ = cursor.end();
}

void StoreLayout::place_gradients(const Placement& placement, DType main, int64_t replica) {
  Cursor cursor(main, 0);
  const auto take_whole = [&](bool resident, int64_t chunk, bool by_product) {
    for_each_slab(placement, [&](size_t b, const Bucket& bucket, size_t s, const Slab& slab) {
      const bool is_wanted =
          bucket.is_resident == resident && bucket.chunk == chunk && slab.gradient_by_product == by_product;
      if (is_wanted) offsets_[b][s].gradients = cursor.take(slab.elements());
    });
  };
  const auto take_summed = [&](bool resident, int64_t chunk) {
    const int64_t begin = cursor.end();
    take_whole(resident, chunk, false);
    if (cursor.end() > begin) summed_gradients_[static_cast<size_t>(chunk)] = {begin, cursor.end()};
  };
  // Those that are cleared come first, so that few fills do it.
  for (int64_t chunk = 0; chunk < placement.chunks(); ++chunk) take_summed(true, chunk);
  for (int64_t chunk = 0; chunk < placement.chunks(); ++chunk) take_whole(true, chunk, true);
  for_each_slab(placement, [&](size_t b, const Bucket&, size_t s, const Slab& slab) {
    SlabOffsets& offsets = offsets_[b][s];
    offsets.gradient_shard = placement.shards_weights()
                                 ? cursor.take(shard_elements(placement, slab))
                                 : offsets.gradients + offset_of_shard(placement, slab, replica, main);
  });
  fill_slots(placement, cursor, [&](int64_t chunk) {
    take_summed(false, chunk);
    take_whole(false, chunk, true);
  });
  gradient_bytes_ = cursor.end();
}

}  // namespace megalith::parallel
