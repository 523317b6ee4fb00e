#include "data/order/numpy_random.h"

#include <algorithm>
#include <bit>

#include "core/error.h"

namespace megalith::data {

NumpyRandomState::NumpyRandomState(uint32_t seed) {
  for (uint32_t i = 0; i < kWords; ++i) {
    state_[i] = seed;
    seed = 1812433253u * (seed ^ (seed >> 30)) + i + 1;
  }
}

void NumpyRandomState::refill() {
  constexpr size_t kShift = 397;
  const auto twist = [this](size_t i, size_t next, size_t far) {
    const uint32_t both = (state_[i] & 0x80000000u) | (state_[next] & 0x7fffffffu);
    state_[i] = state_[far] ^ (both >> 1) ^ ((0u - (both & 1u)) & 0x9908b0dfu);
  };
  for (size_t i = 0; i < kWords - kShift; ++i) twist(i, i + 1, i + kShift);
  for (size_t i = kWords - kShift; i + 1 < kWords; ++i) twist(i, i + 1, i + kShift - kWords);
  twist(kWords - 1, 0, kShift - 1);
  for (size_t i = 0; i < kWords; ++i) {
    uint32_t word = state_[i];
    word ^= word >> 11;
    word ^= (word << 7) & 0x9d2c5680u;
    word ^= (word << 15) & 0xefc60000u;
    words_[i] = word ^ (word >> 18);
  }
  used_ = 0;
}

size_t NumpyRandomState::draw_places(uint32_t top, std::array<uint32_t, kAhead>& places) {
  const uint32_t mask = ~uint32_t{0} >> std::countl_zero(top);
  // As long as the highest bit of the bound stays, so does the mask.
  const auto wanted = static_cast<uint32_t>(std::min<size_t>(kAhead, top - mask / 2));
  uint32_t count = 0;
  while (count < wanted) {
    if (used_ == kWords) refill();
    // Kept or not is a coin toss that no branch should bet on.
    while (used_ < kWords && count < wanted) {
      const uint32_t place = words_[used_++] & mask;
      places[count] = place;
      count += place <= top - count ? 1 : 0;
    }
  }
  return count;
}

uint64_t NumpyRandomState::interval(uint64_t max) {
  if (max == 0) return 0;
  const uint64_t mask = ~uint64_t{0} >> std::countl_zero(max);
  uint64_t value;
  do {
    value = next32();
    if (max > 0xffffffffu) value = (value << 32) | next32();
    value &= mask;
  } while (value > max);
  return value;
}

namespace {
// numpy's SeedSequence (after M. O'Neill's seed_seq_fe): a pool of four words, hashed and mixed, then stretched.
class SeedSequence {
 public:
  explicit SeedSequence(uint32_t entropy) {
    uint32_t constant = 0x43b0d7e5u;
    const auto hash = [&constant](uint32_t value) {
      value ^= constant;
      constant *= 0x931e8875u;
      value *= constant;
      return value ^ (value >> 16);
    };
    pool_[0] = hash(entropy);
    for (size_t i = 1; i < pool_.size(); ++i) pool_[i] = hash(0);
    for (size_t from = 0; from < pool_.size(); ++from) {
      for (size_t to = 0; to < pool_.size(); ++to) {
        if (from != to) pool_[to] = mix(pool_[to], hash(pool_[from]));
      }
    }
  }

  std::array<uint64_t, 4> generate() const {
    std::array<uint64_t, 4> words{};
    uint32_t constant = 0x8b51f9ddu;
    for (size_t i = 0; i < 2 * words.size(); ++i) {
      uint32_t value = pool_[i % pool_.size()] ^ constant;
      constant *= 0x58f38dedu;
      value *= constant;
      value ^= value >> 16;
      words[i / 2] |= uint64_t{value} << (32 * (i % 2));
    }
    return words;
  }

 private:
  static uint32_t mix(uint32_t x, uint32_t y) {
    const uint32_t result = 0xca01f9ddu * x - 0x4973f715u * y;
    return result ^ (result >> 16);
  }

  std::array<uint32_t, 4> pool_{};
};
}  // namespace

NumpyGenerator::NumpyGenerator(uint32_t seed) {
  const std::array<uint64_t, 4> words = SeedSequence(seed).generate();
  increment_ = (((Word128{words[2]} << 64) | words[3]) << 1) | 1;
  step();
  state_ += (Word128{words[0]} << 64) | words[1];
  step();
}

uint64_t NumpyGenerator::next64() {
  step();
  const auto high = static_cast<uint64_t>(state_ >> 64);
  return std::rotr(high ^ static_cast<uint64_t>(state_), static_cast<int>(high >> 58));
}

uint32_t NumpyGenerator::next32() {
  half_kept_ = !half_kept_;
  if (!half_kept_) return half_;
  const uint64_t both = next64();
  half_ = static_cast<uint32_t>(both >> 32);
  return static_cast<uint32_t>(both);
}

// D. Lemire, "Fast Random Integer Generation in an Interval", 2019.
int32_t NumpyGenerator::integer(int32_t low, int32_t high) {
  MEGALITH_CHECK(low < high, "no integer in [{}, {})", low, high);
  const auto range = static_cast<uint32_t>(high) - static_cast<uint32_t>(low);
  if (range == 1) return low;
  uint64_t product = uint64_t{next32()} * range;
  if (static_cast<uint32_t>(product) < range) {
    const uint32_t threshold = (0u - range) % range;
    while (static_cast<uint32_t>(product) < threshold) product = uint64_t{next32()} * range;
  }
  return static_cast<int32_t>(static_cast<uint32_t>(low) + static_cast<uint32_t>(product >> 32));
}

}  // namespace megalith::data
