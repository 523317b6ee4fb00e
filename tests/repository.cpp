#include "repository.h"

namespace megalith {

std::filesystem::path in_repository(const std::filesystem::path& path) {
  return std::filesystem::path(MEGALITH_SOURCE_DIR) / path;
}

}  // namespace megalith
