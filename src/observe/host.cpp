#include "observe/host.h"

#include <unistd.h>

namespace megalith::observe {

std::string host_name() {
  char name[256] = {};
  return ::gethostname(name, sizeof name - 1) == 0 ? name : "unknown";
}

}  // namespace megalith::observe
