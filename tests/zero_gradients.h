#pragma once

#include "ops/elementwise.h"
#include "parallel/placement/parameter_store.h"

namespace megalith::test {

// All of them: a test adds to gradients from its first micro batch on, where a step would overwrite most.
inline void zero_gradients(const parallel::ParameterStore& store, Stream& stream) {
  const std::vector<parallel::Bucket>& buckets = store.placement().buckets();
  for (size_t bucket = 0; bucket < buckets.size(); ++bucket) {
    for (size_t slab = 0; slab < buckets[bucket].slabs.size(); ++slab)
      ops::fill(stream, {.x = store.slab(bucket, slab).gradients, .value = 0.0});
  }
}

}  // namespace megalith::test
