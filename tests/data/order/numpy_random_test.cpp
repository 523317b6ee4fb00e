#include "data/order/numpy_random.h"

#include <gtest/gtest.h>

#include <numeric>
#include <vector>

#include "data/data_testing.h"

namespace megalith::data {
namespace {

// Every constant here was printed by numpy 2.4.

std::vector<int32_t> shuffled(uint32_t seed, int32_t count) {
  std::vector<int32_t> values(static_cast<size_t>(count));
  std::iota(values.begin(), values.end(), 0);
  NumpyRandomState(seed).shuffle(std::span(values));
  return values;
}

uint64_t hash_of(const std::vector<int32_t>& values) {
  Fnv hash;
  for (const int32_t value : values) hash.add(static_cast<uint32_t>(value));
  return hash.value();
}

TEST(NumpyRandomState, ShufflesShortArraysAsNumpy) {
  EXPECT_EQ(shuffled(0, 10), (std::vector<int32_t>{2, 8, 4, 9, 1, 6, 7, 3, 0, 5}));
  EXPECT_EQ(shuffled(42, 10), (std::vector<int32_t>{8, 1, 5, 0, 7, 2, 9, 4, 3, 6}));
}

TEST(NumpyRandomState, ShufflesLongArraysAsNumpy) {
  EXPECT_EQ(hash_of(shuffled(1234, 100000)), 0xfbebeb1073532f2bu);
  EXPECT_EQ(hash_of(shuffled(0xffffffffu, 70000)), 0xda7306697f6ab14du);
}

TEST(NumpyRandomState, LeavesNothingToShuffleAlone) {
  EXPECT_EQ(shuffled(1, 0), std::vector<int32_t>{});
  EXPECT_EQ(shuffled(1, 1), std::vector<int32_t>{0});
}

TEST(NumpyRandomState, DrawsTwoWordsBeyond32Bits) {
  NumpyRandomState random(7);
  const uint64_t max = (uint64_t{1} << 40) + 12345;
  for (const uint64_t expected :
       {752595690692u, 108744157686u, 291964244179u, 309610205529u, 936371205000u, 719526270950u}) {
    EXPECT_EQ(random.interval(max), expected);
  }
}

TEST(NumpyGenerator, DrawsTheLengthsOfMockData) {
  NumpyGenerator random(0);
  std::vector<int32_t> lengths(100000);
  for (int32_t& length : lengths) length = random.integer(1, 4096);
  EXPECT_EQ((std::vector<int32_t>(lengths.begin(), lengths.begin() + 10)),
            (std::vector<int32_t>{3484, 2609, 2094, 1105, 1261, 168, 309, 68, 718, 3331}));
  EXPECT_EQ(hash_of(lengths), 0x7f42f778132c41eu);
}

TEST(NumpyGenerator, DrawsWideRangesWithRejection) {
  const auto draw = [](uint32_t seed, int32_t low, int32_t high) {
    NumpyGenerator random(seed);
    std::vector<int32_t> values(10000);
    for (int32_t& value : values) value = random.integer(low, high);
    return hash_of(values);
  };
  EXPECT_EQ(draw(12345, -5, 2147483647), 0x9d6bc7c122d0ddf4u);
  EXPECT_EQ(draw(3, INT32_MIN, (1 << 30) + 7), 0xff59142a35b8069du);
}

}  // namespace
}  // namespace megalith::data
