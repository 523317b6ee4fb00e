#pragma once

#include <array>

#include "core/rng.h"
#include "core/tensor.h"
#include "ops/cpu/philox.h"
#include "ops/dropout.h"

namespace megalith::ops::cpu {

// The most channels that keep_factors draws in one call.
constexpr int64_t kMaxDraw = 256;

// What each of `count` values from `channel` on is multiplied by: 0 where dropped, else `scale`.
template <class M>
void keep_factors(uint64_t key, int64_t position, int64_t channel, int64_t count, uint32_t threshold, M scale,
                  M* factors) {
  constexpr int64_t kBatch = 4 * kPhiloxLanes;
  std::array<uint32_t, kMaxDraw + kBatch> words;
  const int64_t skipped = channel % 4;
  for (int64_t drawn = 0; drawn < skipped + count; drawn += kBatch) {
    philox_lanes(key, static_cast<uint32_t>((channel + drawn) / 4), static_cast<uint32_t>(position),
                 words.data() + drawn);
  }
  const uint32_t* wanted = words.data() + skipped;
#pragma omp simd
  for (int64_t i = 0; i < count; ++i) factors[i] = wanted[i] >= threshold ? scale : M(0);
}

// The Philox key of a sample's draws.
inline uint64_t key_of_sample(const Dropout& dropout, int64_t sample) {
  return DropoutKey{.seed = dropout.seed, .site = dropout.site, .step = *dropout.step}.of_sample(
      static_cast<uint64_t>(dropout.sample_ids.as<int64_t>()[sample]));
}

}  // namespace megalith::ops::cpu
