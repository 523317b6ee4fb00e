#pragma once

#include "core/arena.h"
#include "ops/optimizer.h"
#include "parallel/placement/placement.h"
#include "parallel/placement/store_layout.h"

namespace megalith::parallel::testing {

// What a rank's arenas must hold for its parameters, to the byte.
struct PlacementBytes {
  int64_t weights = 0;
  int64_t gradients = 0;
  int64_t remainders = 0;  // what bf16 weights lack of their masters; 0 for other weights
  int64_t moments = 0;
  int64_t update_table = 0;  // tiles and scalars of the optimizer
};

template <class Rows>
int64_t tiles_of(const Placement& placement, const std::vector<Rows>& all) {
  int64_t tiles = 0;
  for (const Rows& rows : all) {
    const int64_t elements = rows.local_rows.size() * placement.parameters()[rows.parameter].columns();
    tiles += ceil_div(elements, ops::kUpdateTile);
  }
  return tiles;
}

inline int64_t table_bytes(const Placement& placement, int64_t replica) {
  const int64_t updated = tiles_of(placement, placement.optimizer_shard(replica));
  const int64_t counted = tiles_of(placement, placement.rows_in_norm(replica));
  const auto bytes = [](int64_t count, int64_t size) { return round_up(count * size, Arena::kAlignment); };
  return bytes(updated, sizeof(ops::UpdateTile)) + bytes(counted, sizeof(ops::UpdateTile)) +
         bytes(counted, size_of(DType::f64)) + bytes(1, sizeof(ops::UpdateScalars));
}

inline PlacementBytes bytes_of(const Placement& placement, DType compute, int64_t replica) {
  const DType main = main_dtype(compute);
  const StoreLayout layout(placement, compute, replica);
  PlacementBytes bytes{.weights = layout.weight_bytes(),
                       .gradients = layout.gradient_bytes(),
                       .update_table = table_bytes(placement, replica)};
  for (const Bucket& bucket : placement.buckets()) {
    for (const Slab& slab : bucket.slabs) {
      const int64_t elements = slab.elements() / placement.shards();
      bytes.moments += 2 * Arena::footprint(main, elements);
      if (compute != main) bytes.remainders += Arena::footprint(DType::i16, elements);
    }
  }
  return bytes;
}

}  // namespace megalith::parallel::testing
