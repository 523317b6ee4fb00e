#pragma once

#include <filesystem>
#include <vector>

namespace megalith::observe {

// Writes report.html into the run's directory and returns its path: one page that needs no network and no libraries,
// made from what the run logged (run_history.h). Throws a user error where there is nothing to report on.
std::filesystem::path write_report(const std::filesystem::path& run_directory);

struct ReportRequest {
  std::vector<std::filesystem::path> runs;  // the first is the one that others are compared with
  std::filesystem::path page;               // the HTML file; empty: none
  std::filesystem::path pictures;           // a directory for a PNG file of each plot; empty: none
  bool dark_pictures = false;
};

// What was written, in order.
std::vector<std::filesystem::path> write_report(const ReportRequest& request);

}  // namespace megalith::observe
