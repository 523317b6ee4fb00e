#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <utility>

namespace megalith::data {

// numpy.random.RandomState(seed), as far as Megatron uses it: the same shuffles, bit for bit. MT19937 (Matsumoto and
// Nishimura, 1998) in 32-bit words, a block at a time: std::mt19937 gives the same numbers at half the speed.
class NumpyRandomState {
 public:
  explicit NumpyRandomState(uint32_t seed);

  // Uniform in [0, max] by masked rejection.
  uint64_t interval(uint64_t max);

  // Fisher-Yates from the end. Which values are swapped does not depend on them, so the places are drawn ahead: the
  // memory that a long array is in has time to answer.
  template <class T>
  void shuffle(std::span<T> values) {
    std::array<uint32_t, kAhead> places;
    for (size_t top = values.size() - (values.empty() ? 0 : 1); top > 0;) {
      if (top > 0xffffffffu) {
        std::swap(values[top], values[interval(top)]);
        --top;
        continue;
      }
      const size_t count = draw_places(static_cast<uint32_t>(top), places);
      for (size_t i = 0; i < count; ++i) __builtin_prefetch(&values[places[i]], 1);
      for (size_t i = 0; i < count; ++i) std::swap(values[top - i], values[places[i]]);
      top -= count;
    }
  }

 private:
  static constexpr size_t kWords = 624;
  static constexpr size_t kAhead = 64;

  uint32_t next32() {
    if (used_ == kWords) refill();
    return words_[used_++];
  }
  void refill();
  // interval(top), interval(top - 1), ...: at least one of them, at most kAhead, none for 0.
  size_t draw_places(uint32_t top, std::array<uint32_t, kAhead>& places);

  std::array<uint32_t, kWords> state_;
  std::array<uint32_t, kWords> words_;  // what the state gives
  size_t used_ = kWords;
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
