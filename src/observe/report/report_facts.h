#pragma once

#include <string>

#include "observe/report/report_run.h"

namespace megalith::observe {

// The numbers that the report of a run opens with, as cards of HTML.
std::string headline_cards(const ReportedRun& run);

}  // namespace megalith::observe
