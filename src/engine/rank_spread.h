#pragma once

#include <cstdint>
#include <optional>

namespace megalith::engine {

// How long ranks worked in a step, without the time in which they waited for each other.
struct RankSpread {
  int64_t slowest_rank = 0;
  double slowest_seconds = 0.0;
  double fastest_seconds = 0.0;
};

// What a rank puts into a reduction by which all learn the spread: the largest over ranks of each number says who was
// slowest and how long the fastest took, however many ranks there are.
struct RankTimes {
  double slowest = 0.0;
  double fastest = 0.0;
};

// `seconds` 0: not known. Exact for a million ranks and two hours.
RankTimes times_of_rank(double seconds, int64_t rank);
// Nothing where some rank's time was not known.
std::optional<RankSpread> spread_of(const RankTimes& largest);

}  // namespace megalith::engine
