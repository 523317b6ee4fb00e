#include "engine/rank_spread.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace megalith::engine {
namespace {

// As the reduction over ranks makes it.
std::optional<RankSpread> spread(const std::vector<double>& seconds, int64_t first_rank = 0) {
  RankTimes largest = times_of_rank(seconds[0], first_rank);
  for (size_t i = 1; i < seconds.size(); ++i) {
    const RankTimes times = times_of_rank(seconds[i], first_rank + static_cast<int64_t>(i));
    largest.slowest = std::max(largest.slowest, times.slowest);
    largest.fastest = std::max(largest.fastest, times.fastest);
  }
  return spread_of(largest);
}

TEST(RankSpread, NamesTheSlowestAndTimesTheFastest) {
  const auto found = spread({0.5, 0.75, 0.25});
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->slowest_rank, 1);
  EXPECT_DOUBLE_EQ(found->slowest_seconds, 0.75);
  EXPECT_DOUBLE_EQ(found->fastest_seconds, 0.25);
}

TEST(RankSpread, IsExactForManyRanksAndLongSteps) {
  const int64_t last = (int64_t{1} << 20) - 1;
  const auto found = spread({7199.0, 7199.000001}, last - 1);
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->slowest_rank, last);
  EXPECT_NEAR(found->slowest_seconds, 7199.000001, 1.5e-6);
}

TEST(RankSpread, IsNotKnownBeforeEveryRankHasMeasured) {
  EXPECT_FALSE(spread({0.5, 0.0, 0.25}).has_value());
  EXPECT_FALSE(spread_of({}).has_value());
}

}  // namespace
}  // namespace megalith::engine
