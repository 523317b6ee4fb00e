#pragma once

#include <cstdint>

#include "ops/cuda/attention/attention_launch.h"
#include "ops/cuda/random.cuh"

// The draws of attention dropout: channel = (head_offset + head) * keys + key, position = that of the query.

namespace megalith::ops::cuda {

// The Philox key of a sample.
__device__ __forceinline__ uint64_t sample_key(const AttentionDropout& dropout, int sample) {
  return dropout_key(dropout.site_key, *dropout.step, static_cast<uint64_t>(dropout.sample_ids[sample]));
}

// The channel of a head's first key.
__device__ __forceinline__ int64_t first_channel(const AttentionDropout& dropout, int head) {
  return static_cast<int64_t>(dropout.head_offset + head) * dropout.keys;
}

// Whether one weight is kept: the slow way, one Philox call for one decision.
__device__ __forceinline__ bool is_kept(uint64_t key, uint32_t threshold, int64_t channel, int position) {
  const RandomWords words = philox(key, static_cast<uint32_t>(channel >> 2), static_cast<uint32_t>(position));
  const uint32_t low = (channel & 1) ? words.word[1] : words.word[0];
  const uint32_t high = (channel & 1) ? words.word[3] : words.word[2];
  return ((channel & 2) ? high : low) >= threshold;
}

// Four decisions at once, of the channels 4 * group .. 4 * group + 3: bit i is set if channel i is kept.
__device__ __forceinline__ uint32_t kept_of_four(uint64_t key, uint32_t threshold, uint32_t group, int position) {
  const RandomWords words = philox(key, group, static_cast<uint32_t>(position));
  uint32_t bits = 0;
#pragma unroll
  for (int i = 0; i < 4; ++i) bits |= (words.word[i] >= threshold ? 1u : 0u) << i;
  return bits;
}

}  // namespace megalith::ops::cuda
