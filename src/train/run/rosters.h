#pragma once

#include <cstdint>
#include <filesystem>

namespace megalith::train {

// What training knows of a supervisor's rosters, control/roster-000012.json in the run directory: that one of them
// exists, by its name, which holds its generation.

// 0: there is none. I/O error where that cannot be seen.
int64_t newest_roster(const std::filesystem::path& run_directory);

// The fence: I/O error once a later generation than this exists, which has the run then.
void refuse_superseded(const std::filesystem::path& run_directory, int64_t generation);

}  // namespace megalith::train
