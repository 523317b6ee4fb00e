#pragma once

#include <filesystem>

namespace megalith {

// Where a file of this repository lies, given its path from the root.
std::filesystem::path in_repository(const std::filesystem::path& path);

}  // namespace megalith
