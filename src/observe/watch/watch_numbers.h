#pragma once

#include <vector>

#include "observe/draw/styled_line.h"
#include "observe/watch/watch_frame.h"

namespace megalith::observe {

constexpr int64_t kWatchLabel = 13;    // columns before the numbers
constexpr int64_t kWatchRecent = 200;  // steps that speak for now

// The lower half of a frame: a line for each number that the run tells, with a sparkline where there is room.
std::vector<StyledLine> watch_numbers(const RunHistory& history, const WatchView& view);

}  // namespace megalith::observe
