#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

namespace megalith {

struct HostMemory {
  int64_t available = 0;  // bytes
  std::string source;     // what says so, for messages
};

// What processes like this one may still take of this machine's memory: what the kernel can give, and no more than is
// left of the limit of any cgroup (version 1 or 2) around this process. Nothing where the system does not tell. `root`
// is where /proc and /sys are.
std::optional<HostMemory> host_memory(const std::filesystem::path& root = "/");

}  // namespace megalith
