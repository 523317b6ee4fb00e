#pragma once

#include <optional>
#include <vector>

#include "observe/draw/bars.h"
#include "observe/draw/plot.h"
#include "observe/report/report_run.h"

namespace megalith::observe {

// Pictures of how something is shared out; none where the runs did not log it.

std::optional<Plot> step_time_distribution(const std::vector<ReportedRun>& runs);
std::optional<Bars> memory_by_arena(const std::vector<ReportedRun>& runs);
// In how many steps a rank was the slowest; of a single run.
std::optional<Bars> slowest_ranks(const std::vector<ReportedRun>& runs);

}  // namespace megalith::observe
