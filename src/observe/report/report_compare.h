#pragma once

#include <string>
#include <vector>

#include "observe/report/report_run.h"

namespace megalith::observe {

// The numbers that a report of several runs opens with, as a table of HTML: each with its distance from the first
// run's.
std::string comparison_table(const std::vector<ReportedRun>& runs);

// Settings that are not the same in all runs, as HTML; empty where all are.
std::string different_settings(const std::vector<ReportedRun>& runs);

}  // namespace megalith::observe
