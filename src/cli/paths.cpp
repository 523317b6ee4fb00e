#include "cli/paths.h"

#include <filesystem>

#include "core/error.h"

namespace megalith::cli {

namespace fs = std::filesystem;

void check_input_file(const char* option, const std::string& path) {
  std::error_code error;
  if (!path.empty() && !fs::is_regular_file(path, error)) user_error("{} {}: there is no such file", option, path);
}

void check_output_file(const char* option, const std::string& path) {
  const fs::path folder = fs::path(path).parent_path();
  std::error_code error;
  if (folder.empty() || fs::is_directory(folder, error)) return;
  user_error("{} {}: there is no folder {}; make it first", option, path, folder.string());
}

}  // namespace megalith::cli
