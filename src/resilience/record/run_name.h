#pragma once

#include <filesystem>
#include <optional>
#include <string>

namespace megalith::resilience {

// Which run a directory is, as its supervisor wrote it down in control/run: monitors speak for no other.

// Nothing where no supervisor has been yet.
std::optional<std::string> run_name(const std::filesystem::path& run_directory);
// User error for a directory that has another name.
void write_run_name(const std::filesystem::path& run_directory, const std::string& run);

}  // namespace megalith::resilience
