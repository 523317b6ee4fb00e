#include "core/process/host.h"

#include <fmt/format.h>
#include <unistd.h>

#include <fstream>
#include <thread>

namespace megalith {

std::string host_name() {
  char name[256] = {};
  return ::gethostname(name, sizeof name - 1) == 0 ? name : "unknown";
}

std::string processor_name() {
  std::ifstream file("/proc/cpuinfo");
  std::string model = "unknown processor";
  for (std::string line; std::getline(file, line);) {
    const size_t value = line.find(": ");
    if (!line.starts_with("model name") || value == std::string::npos) continue;
    model = line.substr(value + 2);
    break;
  }
  return fmt::format("{}, {} threads", model, std::thread::hardware_concurrency());
}

}  // namespace megalith
