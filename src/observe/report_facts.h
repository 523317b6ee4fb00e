#pragma once

#include <string>
#include <vector>

#include "observe/report_run.h"

namespace megalith::observe {

// The numbers that a report opens with, as HTML: cards of one run, a table of several.
std::string headline_cards(const ReportedRun& run);
std::string comparison_table(const std::vector<ReportedRun>& runs);

// Settings that are not the same in all runs, as HTML; empty where all are.
std::string different_settings(const std::vector<ReportedRun>& runs);

}  // namespace megalith::observe
