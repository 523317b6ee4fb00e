#include "engine/rank_spread.h"

#include <cmath>

namespace megalith::engine {

namespace {
constexpr double kRanks = 1 << 20;
}

RankTimes times_of_rank(double seconds, int64_t rank) {
  // Microseconds above the rank's number.
  return {.slowest = std::ceil(seconds * 1e6) * kRanks + static_cast<double>(rank), .fastest = -seconds};
}

std::optional<RankSpread> spread_of(const RankTimes& largest) {
  if (largest.fastest == 0.0) return std::nullopt;
  const double microseconds = std::floor(largest.slowest / kRanks);
  return RankSpread{.slowest_rank = static_cast<int64_t>(largest.slowest - microseconds * kRanks),
                    .slowest_seconds = microseconds / 1e6,
                    .fastest_seconds = -largest.fastest};
}

}  // namespace megalith::engine
