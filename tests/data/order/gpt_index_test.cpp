#include "data/order/gpt_index.h"

#include <gtest/gtest.h>

#include "data/data_testing.h"
#include "data/order/extended_order.h"
#include "data/order/numpy_random.h"

namespace megalith::data {
namespace {

using Start = GptIndex::Start;

std::vector<Start> starts_of(const GptIndex& index) {
  std::vector<Start> starts;
  for (int64_t i = 0; i <= index.size(); ++i) starts.push_back(index.unshuffled_start(i));
  return starts;
}

std::vector<int64_t> shuffle_of(const GptIndex& index) {
  std::vector<int64_t> shuffle;
  for (int64_t i = 0; i < index.size(); ++i) shuffle.push_back(index.shuffle_index(i));
  return shuffle;
}

void expect_documents(const GptIndex& index, const std::vector<int32_t>& expected) {
  const auto documents = index.document_index();
  EXPECT_EQ(std::vector<int32_t>(documents.begin(), documents.end()), expected);
}

const std::vector<int32_t> kLengths = {5, 0, 1, 4, 8, 3};  // 21 tokens: 5 samples of 4

// The expected indices below come from a separate Python program that calls numpy and finds the starts by bisection.

TEST(GptIndex, OneEpoch) {
  const GptIndex index(kLengths, 10, 4, 4, 1234);
  EXPECT_EQ(index.epochs().count, 1);
  EXPECT_FALSE(index.epochs().separate_final_epoch);
  expect_documents(index, {12, 11, 15, 10, 14, 13});
  EXPECT_EQ(starts_of(index), (std::vector<Start>{{0, 0}, {3, 0}, {3, 4}, {4, 3}, {4, 7}, {5, 3}}));
  EXPECT_EQ(shuffle_of(index), (std::vector<int64_t>{2, 0, 4, 3, 1}));
}

TEST(GptIndex, EpochsMixedTogether) {
  const GptIndex index(kLengths, 10, 4, 19, 1234);
  EXPECT_EQ(index.epochs().count, 4);
  EXPECT_FALSE(index.epochs().separate_final_epoch);
  expect_documents(index,
                   {11, 14, 12, 13, 11, 10, 15, 14, 10, 12, 11, 13, 14, 14, 12, 12, 15, 13, 15, 15, 10, 10, 11, 13});
  EXPECT_EQ(starts_of(index), (std::vector<Start>{{0, 0},  {1, 4},  {2, 0},  {3, 3},  {5, 3},  {6, 2},  {7, 3},
                                                  {7, 7},  {8, 3},  {11, 1}, {12, 1}, {12, 5}, {13, 1}, {13, 5},
                                                  {15, 0}, {17, 0}, {18, 0}, {19, 1}, {20, 2}, {21, 1}, {23, 0}}));
  EXPECT_EQ(shuffle_of(index),
            (std::vector<int64_t>{8, 19, 13, 1, 4, 17, 14, 11, 9, 0, 7, 3, 10, 6, 2, 5, 12, 16, 18, 15}));
}

TEST(GptIndex, LastEpochKeptApart) {
  const GptIndex index(kLengths, 10, 4, 12, 1234);
  EXPECT_EQ(index.epochs().count, 3);
  EXPECT_TRUE(index.epochs().separate_final_epoch);
  EXPECT_EQ(index.epochs().samples_before_final, 10);
  expect_documents(index, {11, 12, 15, 12, 13, 14, 11, 10, 14, 15, 10, 13, 11, 10, 13, 12, 15, 14});
  EXPECT_EQ(starts_of(index), (std::vector<Start>{{0, 0},
                                                  {3, 0},
                                                  {4, 3},
                                                  {5, 3},
                                                  {5, 7},
                                                  {7, 3},
                                                  {8, 2},
                                                  {8, 6},
                                                  {9, 2},
                                                  {10, 3},
                                                  {11, 2},
                                                  {13, 2},
                                                  {14, 1},
                                                  {16, 0},
                                                  {17, 1},
                                                  {17, 5}}));
  EXPECT_EQ(shuffle_of(index), (std::vector<int64_t>{7, 6, 2, 3, 1, 9, 5, 4, 0, 8, 14, 11, 13, 10, 12}));
}

TEST(GptIndex, DocumentsAsLongAsASample) {
  const GptIndex index(std::vector<int32_t>{4, 5, 4, 5}, 0, 4, 3, 1);
  expect_documents(index, {3, 2, 0, 1});
  EXPECT_EQ(starts_of(index), (std::vector<Start>{{0, 0}, {0, 4}, {1, 3}, {2, 3}, {3, 3}}));
  EXPECT_EQ(shuffle_of(index), (std::vector<int64_t>{0, 2, 1, 3}));
}

struct Hashes {
  uint64_t documents, positions, offsets, shuffle;
};

void expect_hashes(const GptIndex& index, const Hashes& expected) {
  Fnv documents;
  Fnv positions;
  Fnv offsets;
  Fnv shuffle;
  for (const int32_t document : index.document_index()) documents.add(static_cast<uint64_t>(document));
  for (const Start start : starts_of(index)) {
    positions.add(static_cast<uint64_t>(start.position));
    offsets.add(static_cast<uint64_t>(start.offset));
  }
  for (const int64_t sample : shuffle_of(index)) shuffle.add(static_cast<uint64_t>(sample));
  EXPECT_EQ(documents.value(), expected.documents);
  EXPECT_EQ(positions.value(), expected.positions);
  EXPECT_EQ(offsets.value(), expected.offsets);
  EXPECT_EQ(shuffle.value(), expected.shuffle);
}

TEST(GptIndex, AgreesWithNumpyOnManyDocuments) {
  NumpyGenerator random(0);
  std::vector<int32_t> lengths(1500);
  for (int32_t& length : lengths) length = random.integer(1, 4096);
  const std::span<const int32_t> all(lengths);

  const GptIndex apart(all.first(1000), 0, 128, 40000, 1234);
  EXPECT_EQ(apart.epochs().count, 3);
  EXPECT_EQ(apart.size(), 49532);
  EXPECT_TRUE(apart.epochs().separate_final_epoch);
  expect_hashes(apart, {0x2c533c8be253c7b3u, 0x9fcd0834517b9447u, 0xb4bcfdb58ab1cbfbu, 0xc134ad0b75232513u});

  const GptIndex mixed(all.first(1000), 0, 128, 33000, 99);
  EXPECT_EQ(mixed.epochs().count, 2);
  EXPECT_FALSE(mixed.epochs().separate_final_epoch);
  expect_hashes(mixed, {0x51a18f652b54eeddu, 0xe5b33c253a0a4e8bu, 0x4a7d2f18b49d38dcu, 0xc4435efa549e9301u});

  const GptIndex middle(all.subspan(500), 500, 2048, 100, 99);
  EXPECT_EQ(middle.size(), 1020);
  expect_hashes(middle, {0x1f470ae1bb74dd7fu, 0xc340a04d7e57cb83u, 0x8a4b188de926e84fu, 0xae76cb78d0a1efc5u});
}

TEST(GptIndex, OneEpochDoesNotDependOnTheHorizon) {
  const GptIndex few(kLengths, 0, 4, 1, 5);
  const GptIndex all(kLengths, 0, 4, 5, 5);
  EXPECT_EQ(shuffle_of(few), shuffle_of(all));
  EXPECT_EQ(starts_of(few), starts_of(all));
}

TEST(CountEpochs, CountsInInt64) {
  // 2^33 samples of 2^13 tokens from 2^46 tokens: the last token of the last sample is one too many for one epoch.
  const Epochs epochs = count_epochs(int64_t{1} << 46, 8192, int64_t{1} << 33);
  EXPECT_EQ(epochs.count, 2);
  EXPECT_EQ(epochs.samples, (int64_t{1} << 34) - 1);
  EXPECT_TRUE(epochs.separate_final_epoch);
  EXPECT_EQ(epochs.samples_before_final, (int64_t{1} << 33) - 1);
}

TEST(CountEpochs, RefusesWhatCannotBeCounted) {
  expect_error(ErrorKind::user, {"4611686018427387904"}, [] { count_epochs(100, 4096, int64_t{1} << 62); });
}

TEST(GptIndex, RefusesAnIndexLargerThanMemory) {
  expect_error(ErrorKind::user, {"trainer.max_steps", "GiB"}, [] { GptIndex(kLengths, 0, 4, int64_t{1} << 50, 1); });
}

TEST(CompactInts, HoldsWideNumbersWhereNeeded) {
  const int64_t wide = int64_t{1} << 33;
  CompactInts ints(3, wide);
  ints.set(1, wide);
  EXPECT_EQ(ints[1], wide);
  EXPECT_EQ(ints[2], 0);
  EXPECT_EQ(ints.size(), 3);
}

TEST(ExtendedOrder, AppendsBlocksOfOtherSeeds) {
  int builds = 0;
  const ExtendedOrder order(
      [&builds](uint32_t seed, bool) {
        ++builds;
        return std::make_shared<const GptIndex>(kLengths, 0, 4, 4, seed);
      },
      100);
  ASSERT_EQ(order.block_size(), 5);
  // The horizon was 4 samples; the fifth is what the epoch has left, and comes before any other block.
  EXPECT_EQ(order.locate(4).index.get(), &order.first_block());
  for (int64_t block = 0; block < 3; ++block) {
    const GptIndex expected(kLengths, 0, 4, 4, 100 + static_cast<uint32_t>(block));
    for (int64_t i = 0; i < 5; ++i) {
      const auto place = order.locate(5 * block + i);
      EXPECT_EQ(place.sample, i);
      EXPECT_EQ(place.index->start(place.sample), expected.start(i));
    }
  }
  EXPECT_EQ(builds, 3);
}

}  // namespace
}  // namespace megalith::data
