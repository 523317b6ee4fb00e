#pragma once

#include <vector>

#include "observe/report/report_pictures.h"

namespace megalith::observe {

// Where the wall time of the runs went, and when.
std::vector<Picture> time_pictures(const std::vector<ReportedRun>& runs);

// What to count the time since a start in, so that the numbers of an axis are handy.
struct ClockUnit {
  const char* label;
  double seconds;
};
ClockUnit clock_unit_for(double seconds);

// The ink of a use of time, as palette.h names it.
std::string_view ink_of(TimeUse use);

}  // namespace megalith::observe
