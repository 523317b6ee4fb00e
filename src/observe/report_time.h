#pragma once

#include <vector>

#include "observe/report_pictures.h"

namespace megalith::observe {

// Where the wall time of the runs went, and when.
std::vector<Picture> time_pictures(const std::vector<ReportedRun>& runs);

// The ink of a use of time, as palette.h names it.
std::string_view ink_of(TimeUse use);

}  // namespace megalith::observe
