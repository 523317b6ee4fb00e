#pragma once

#include <filesystem>

namespace megalith::observe {

// Writes report.html into the run's directory and returns its path: one page that needs no network and no scripts, made
// from what the run logged (run_history.h). Throws a user error where there is nothing to report on.
std::filesystem::path write_report(const std::filesystem::path& run_directory);

}  // namespace megalith::observe
