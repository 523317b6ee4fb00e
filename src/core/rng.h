#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace megalith {

// Counter-based random numbers: Philox4x32-10 (Salmon et al., "Parallel Random Numbers: As Easy as 1, 2, 3", 2011). The
// same (key, counter) gives the same four words on every device, thread and layout; no state is kept.
inline std::array<uint32_t, 4> philox(uint64_t key, std::array<uint32_t, 4> counter) {
  auto k0 = static_cast<uint32_t>(key);
  auto k1 = static_cast<uint32_t>(key >> 32);
  for (int round = 0; round < 10; ++round) {
    const uint64_t p0 = uint64_t{0xD2511F53u} * counter[0];
    const uint64_t p1 = uint64_t{0xCD9E8D57u} * counter[2];
    counter = {static_cast<uint32_t>(p1 >> 32) ^ counter[1] ^ k0, static_cast<uint32_t>(p1),
               static_cast<uint32_t>(p0 >> 32) ^ counter[3] ^ k1, static_cast<uint32_t>(p0)};
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  return counter;
}

// Mixes a value into a key (the finaliser of SplitMix64).
constexpr uint64_t mix_key(uint64_t key, uint64_t value) {
  uint64_t z = key + 0x9E3779B97F4A7C15u + value * 0xBF58476D1CE4E5B9u;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
  return z ^ (z >> 31);
}

// A key from a seed and a name (FNV-1a), the same on every machine.
constexpr uint64_t named_key(uint64_t seed, std::string_view name) {
  uint64_t hash = 0xcbf29ce484222325u;
  for (const char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  return mix_key(seed, hash);
}

// Uniform in [0, 1) with 24 random bits.
constexpr float uniform_from_bits(uint32_t bits) {
  return static_cast<float>(bits >> 8) * 0x1p-24f;
}

// The standard normal value of element `index` under `key`: Box-Muller, in double so that devices agree.
double normal_at(uint64_t key, uint64_t index);

// What identifies a dropout decision: never a rank or a micro batch (docs/design.md, law 1). A value is kept when its
// 32 random bits are at or above dropout_threshold().
struct DropoutKey {
  uint64_t seed = 0;
  uint32_t site = 0;
  uint64_t step = 0;

  // The Philox key of one sample; the counter is then {channel / 4, position, 0, 0}, and channel % 4 picks the word.
  constexpr uint64_t of_sample(uint64_t sample_id) const {
    return mix_key(mix_key(mix_key(seed, site), step), sample_id);
  }
};

constexpr uint32_t dropout_threshold(double probability) {
  return static_cast<uint32_t>(probability * 4294967296.0);
}

}  // namespace megalith
