#pragma once

#include <cstdint>
#include <random>
#include <span>
#include <utility>

namespace megalith::data {

// numpy.random.RandomState(seed), as far as Megatron uses it: the same shuffles, bit for bit. Its MT19937 and its
// seeding are those of std::mt19937.
class NumpyRandomState {
 public:
  explicit NumpyRandomState(uint32_t seed) : engine_(seed) {}

  // Uniform in [0, max] by masked rejection.
  uint64_t interval(uint64_t max);

  template <class T>
  void shuffle(std::span<T> values) {
    for (size_t i = values.size(); i-- > 1;) std::swap(values[i], values[interval(i)]);
  }

 private:
  uint64_t next32() { return engine_(); }

  std::mt19937 engine_;
};

// numpy.random.default_rng(seed): PCG64 seeded through SeedSequence, and integers() below 2^32.
class NumpyGenerator {
 public:
  explicit NumpyGenerator(uint32_t seed);

  // Uniform in [low, high), as integers(low, high) with a 32-bit dtype.
  int32_t integer(int32_t low, int32_t high);

 private:
  __extension__ using Word128 = unsigned __int128;

  uint64_t next64();
  uint32_t next32();
  void step() { state_ = state_ * kMultiplier + increment_; }

  static constexpr Word128 kMultiplier = (Word128{2549297995355413924u} << 64) | 4865540595714422341u;
  Word128 state_ = 0;
  Word128 increment_ = 0;
  bool half_kept_ = false;
  uint32_t half_ = 0;
};

}  // namespace megalith::data
