#pragma once

#include <cstdint>

// core/rng.h in device code, word for word.

namespace megalith::ops::cuda {

struct RandomWords {
  uint32_t word[4];
};

__device__ inline RandomWords philox(uint64_t key, uint32_t c0, uint32_t c1) {
  auto k0 = static_cast<uint32_t>(key);
  auto k1 = static_cast<uint32_t>(key >> 32);
  uint32_t c2 = 0;
  uint32_t c3 = 0;
#pragma unroll
  for (int round = 0; round < 10; ++round) {
    const uint64_t p0 = uint64_t{0xD2511F53u} * c0;
    const uint64_t p1 = uint64_t{0xCD9E8D57u} * c2;
    c0 = static_cast<uint32_t>(p1 >> 32) ^ c1 ^ k0;
    c1 = static_cast<uint32_t>(p1);
    c2 = static_cast<uint32_t>(p0 >> 32) ^ c3 ^ k1;
    c3 = static_cast<uint32_t>(p0);
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  return {{c0, c1, c2, c3}};
}

__device__ inline uint64_t mix_key(uint64_t key, uint64_t value) {
  uint64_t z = key + 0x9E3779B97F4A7C15u + value * 0xBF58476D1CE4E5B9u;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
  return z ^ (z >> 31);
}

// DropoutKey::of_sample, where site_key = mix_key(seed, site) was mixed on the host.
__device__ inline uint64_t dropout_key(uint64_t site_key, uint64_t step, uint64_t sample_id) {
  return mix_key(mix_key(site_key, step), sample_id);
}

}  // namespace megalith::ops::cuda
