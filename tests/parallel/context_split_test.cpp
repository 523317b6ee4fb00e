#include "parallel/context_split.h"

#include <gtest/gtest.h>

#include <numeric>
#include <set>

namespace megalith::parallel {
namespace {

TEST(ContextSplit, RanksTakeABlockFromEachEnd) {
  const ContextSplit split{.length = 24, .ranks = 3, .rank = 1};
  EXPECT_EQ(positions_of(split, Half::front), (Interval{4, 8}));
  EXPECT_EQ(positions_of(split, Half::back), (Interval{16, 20}));
  std::vector<int64_t> values(24);
  std::iota(values.begin(), values.end(), 100);
  EXPECT_EQ(take_local<int64_t>(split, values), (std::vector<int64_t>{104, 105, 106, 107, 116, 117, 118, 119}));
  EXPECT_EQ(split.local_length(), 8);
}

// All ranks' ring steps together compute each pair of a query and a key that a causal mask allows, once.
TEST(ContextSplit, RingComputesTheCausalMaskOnce) {
  for (const int64_t ranks : {1, 2, 3, 4, 8}) {
    const int64_t length = 4 * ranks;
    std::multiset<std::pair<int64_t, int64_t>> seen;
    for (int64_t rank = 0; rank < ranks; ++rank) {
      const ContextSplit queries{.length = length, .ranks = ranks, .rank = rank};
      for (const RingStep& step : ring_steps(queries)) {
        const ContextSplit keys{.length = length, .ranks = ranks, .rank = step.key_rank};
        for (const BlockPair& pair : step.pairs) {
          const Interval q = positions_of(queries, pair.queries);
          const Interval k = positions_of(keys, pair.keys);
          for (int64_t i = q.begin; i < q.end; ++i) {
            for (int64_t j = k.begin; j < (pair.is_diagonal ? i + 1 : k.end); ++j) seen.emplace(i, j);
          }
        }
      }
    }
    std::multiset<std::pair<int64_t, int64_t>> wanted;
    for (int64_t i = 0; i < length; ++i) {
      for (int64_t j = 0; j <= i; ++j) wanted.emplace(i, j);
    }
    EXPECT_EQ(seen, wanted) << ranks;
  }
}

TEST(ContextSplit, EveryStepOfEveryRankIsEqualWork) {
  for (int64_t rank = 0; rank < 6; ++rank) {
    for (const RingStep& step : ring_steps({.length = 48, .ranks = 6, .rank = rank})) {
      double pairs = 0.0;
      for (const BlockPair& pair : step.pairs) pairs += pair.is_diagonal ? 0.5 : 1.0;
      EXPECT_EQ(pairs, 2.0);
    }
  }
}

// Keys travel to the next rank: what a rank uses in a step, its predecessor used in the step before.
TEST(ContextSplit, KeysTravelAroundTheRing) {
  for (int64_t rank = 0; rank < 4; ++rank) {
    const auto here = ring_steps({.length = 32, .ranks = 4, .rank = rank});
    const auto before = ring_steps({.length = 32, .ranks = 4, .rank = (rank + 3) % 4});
    EXPECT_EQ(here[0].key_rank, rank);
    for (size_t step = 1; step < 4; ++step) EXPECT_EQ(here[step].key_rank, before[step - 1].key_rank);
  }
}

TEST(ContextSplit, DocumentStartsAreCountedFromTheBlock) {
  EXPECT_EQ(document_start_in_block(10, {8, 12}), 2);
  EXPECT_EQ(document_start_in_block(3, {8, 12}), 0);
  EXPECT_EQ(document_start_in_block(20, {8, 12}), 4);  // no key of the block is seen
}

}  // namespace
}  // namespace megalith::parallel
