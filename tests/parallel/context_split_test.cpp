#include "parallel/context_split.h"

#include <gtest/gtest.h>

#include <set>

namespace megalith::parallel {
namespace {

TEST(ContextSplit, RanksTakeABlockFromEachEnd) {
  const ContextSplit split{.length = 24, .ranks = 3, .rank = 1};
  EXPECT_EQ(positions_of(split, Half::front), (Interval{4, 8}));
  EXPECT_EQ(positions_of(split, Half::back), (Interval{16, 20}));
}

TEST(ContextSplit, EveryPositionBelongsToOneRank) {
  for (const int64_t ranks : {1, 2, 3, 4, 8}) {
    const int64_t length = 4 * ranks;
    std::multiset<int64_t> seen;
    for (int64_t rank = 0; rank < ranks; ++rank) {
      for (const Half half : {Half::front, Half::back}) {
        const Interval positions = positions_of({.length = length, .ranks = ranks, .rank = rank}, half);
        for (int64_t i = positions.begin; i < positions.end; ++i) seen.insert(i);
      }
    }
    std::multiset<int64_t> wanted;
    for (int64_t i = 0; i < length; ++i) wanted.insert(i);
    EXPECT_EQ(seen, wanted) << ranks;
  }
}

TEST(ContextSplit, EveryRankSeesAsManyKeys) {
  constexpr int64_t kLength = 48, kRanks = 6;
  for (int64_t rank = 0; rank < kRanks; ++rank) {
    int64_t seen = 0;  // under a causal mask, by all queries of the rank
    for (const Half half : {Half::front, Half::back}) {
      const Interval queries = positions_of({.length = kLength, .ranks = kRanks, .rank = rank}, half);
      for (int64_t i = queries.begin; i < queries.end; ++i) seen += i + 1;
    }
    EXPECT_EQ(seen, kLength * (kLength + 1) / 2 / kRanks) << rank;
  }
}

TEST(ContextSplit, RefusesALengthThatDoesNotDivide) {
  EXPECT_ANY_THROW(positions_of({.length = 10, .ranks = 3, .rank = 0}, Half::front));
}

}  // namespace
}  // namespace megalith::parallel
