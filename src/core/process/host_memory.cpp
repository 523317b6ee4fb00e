#include "core/process/host_memory.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <sstream>
#include <vector>

namespace megalith {

namespace {

namespace fs = std::filesystem;

// The number behind a name at the beginning of a line.
std::optional<int64_t> number_in(const fs::path& file, const std::string& name) {
  std::ifstream stream(file);
  for (std::string line; std::getline(stream, line);) {
    std::istringstream words(line);
    std::string word;
    int64_t number = 0;
    if (words >> word >> number && word == name) return number;
  }
  return std::nullopt;
}

// "max", version 2's word for no limit, is no number.
std::optional<int64_t> number_of(const fs::path& file) {
  std::ifstream stream(file);
  int64_t number = 0;
  if (stream >> number) return number;
  return std::nullopt;
}

// How the two versions call their files.
struct CgroupVersion {
  const char* mount;
  const char* limit;
  const char* usage;
  const char* reclaimable;  // in memory.stat: file pages that the kernel takes back first
};
constexpr CgroupVersion kVersion1{"sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.usage_in_bytes",
                                  "total_inactive_file"};
constexpr CgroupVersion kVersion2{"sys/fs/cgroup", "memory.max", "memory.current", "inactive_file"};

struct Cgroup {
  const CgroupVersion& version;
  std::string path;
};

// Lines of /proc/self/cgroup: "0::/a/b" of version 2, "4:cpu,memory:/a/b" of version 1.
std::vector<Cgroup> cgroups_of_process(const fs::path& root) {
  std::vector<Cgroup> cgroups;
  std::ifstream stream(root / "proc/self/cgroup");
  for (std::string line; std::getline(stream, line);) {
    const size_t first = line.find(':');
    const size_t second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = fmt::format(",{},", line.substr(first + 1, second - first - 1));
    const std::string path = line.substr(second + 1);
    if (controllers == ",,") cgroups.push_back({kVersion2, path});
    if (controllers.find(",memory,") != std::string::npos) cgroups.push_back({kVersion1, path});
  }
  return cgroups;
}

// A limit binds everything below it. In a container the path may be the host's, and the mount shows its end alone.
void apply_limits(const Cgroup& cgroup, const fs::path& root, HostMemory& memory) {
  const fs::path mount = root / cgroup.version.mount;
  for (fs::path path = fs::path(cgroup.path).relative_path();; path = path.parent_path()) {
    const fs::path directory = path.empty() ? mount : mount / path;
    const auto limit = number_of(directory / cgroup.version.limit);
    const auto usage = number_of(directory / cgroup.version.usage);
    if (limit && usage) {
      const int64_t reclaimable = number_in(directory / "memory.stat", cgroup.version.reclaimable).value_or(0);
      const int64_t left = std::max<int64_t>(0, *limit - std::max<int64_t>(0, *usage - reclaimable));
      if (left < memory.available) memory = {left, fmt::format("the memory limit of cgroup /{}", path.string())};
    }
    if (path.empty()) return;
  }
}

}  // namespace

std::optional<HostMemory> host_memory(const fs::path& root) {
  constexpr int64_t kKiB = 1024;
  const auto available = number_in(root / "proc/meminfo", "MemAvailable:");
  if (!available) return std::nullopt;
  HostMemory memory{*available * kKiB, "MemAvailable in /proc/meminfo"};
  for (const Cgroup& cgroup : cgroups_of_process(root)) apply_limits(cgroup, root, memory);
  return memory;
}

}  // namespace megalith
