#pragma once

#include <array>

#include "core/rng.h"
#include "core/tensor.h"
#include "ops/dropout.h"

namespace megalith::ops::cpu {

// Counters drawn at a time: philox() on arrays, so that each line below becomes a few vector instructions.
constexpr int kPhiloxLanes = 16;

// words[4 * i + w] = word w of philox(key, {first + i, position, 0, 0}), for i in [0, kPhiloxLanes).
inline void philox_lanes(uint64_t key, uint32_t first, uint32_t position, uint32_t* words) {
  std::array<uint32_t, kPhiloxLanes> c0, c1, c2, c3;
  for (int i = 0; i < kPhiloxLanes; ++i) {
    c0[i] = first + static_cast<uint32_t>(i);
    c1[i] = position;
    c2[i] = 0;
    c3[i] = 0;
  }
  auto k0 = static_cast<uint32_t>(key);
  auto k1 = static_cast<uint32_t>(key >> 32);
  for (int round = 0; round < 10; ++round) {
    for (int i = 0; i < kPhiloxLanes; ++i) {
      const uint64_t p0 = uint64_t{0xD2511F53u} * c0[i];
      const uint64_t p1 = uint64_t{0xCD9E8D57u} * c2[i];
      c0[i] = static_cast<uint32_t>(p1 >> 32) ^ c1[i] ^ k0;
      c1[i] = static_cast<uint32_t>(p1);
      c2[i] = static_cast<uint32_t>(p0 >> 32) ^ c3[i] ^ k1;
      c3[i] = static_cast<uint32_t>(p0);
    }
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  for (int i = 0; i < kPhiloxLanes; ++i) {
    words[4 * i] = c0[i];
    words[4 * i + 1] = c1[i];
    words[4 * i + 2] = c2[i];
    words[4 * i + 3] = c3[i];
  }
}

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

// Verifies what a dropout with p > 0 needs to know about `rows` rows.
inline void check_dropout(const Dropout& dropout, int64_t rows) {
  MEGALITH_CHECK(0.0 <= dropout.probability && dropout.probability < 1.0, "dropout probability {}",
                 dropout.probability);
  if (dropout.probability == 0.0) return;
  MEGALITH_CHECK(dropout.length > 0 && dropout.sample_ids.dtype == DType::i64 &&
                     dropout.sample_ids.elements() * dropout.length == rows,
                 "dropout of {} rows with {} samples of length {}", rows, dropout.sample_ids.elements(),
                 dropout.length);
}

}  // namespace megalith::ops::cpu
