#include "core/process/version.h"

#include "commit.h"  // made by cmake/commit.cmake whenever the commit changes

namespace megalith {

std::string program_version() {
  const std::string commit = MEGALITH_COMMIT;
  return "megalith " MEGALITH_VERSION + (commit.empty() ? "" : " (" + commit + ")");
}

}  // namespace megalith
