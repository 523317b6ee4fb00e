#include "core/process/host_memory.h"

#include <gtest/gtest.h>

#include <fstream>

#include "temp_dir.h"

namespace megalith {
namespace {

using ::megalith::testing::TempDir;

constexpr int64_t kMiB = int64_t{1} << 20;

class HostMemoryTest : public ::testing::Test {
 protected:
  void write(const std::string& file, const std::string& text) {
    std::filesystem::create_directories((root_ / file).parent_path());
    std::ofstream(root_ / file) << text;
  }
  int64_t available() const { return host_memory(root_.path())->available; }

  TempDir root_;
};

TEST_F(HostMemoryTest, IsWhatTheKernelCanGive) {
  EXPECT_FALSE(host_memory(root_.path()).has_value());
  write("proc/meminfo", "MemTotal:       8388608 kB\nMemFree:        10 kB\nMemAvailable:   4194304 kB\n");
  EXPECT_EQ(available(), 4096 * kMiB);
  EXPECT_NE(host_memory(root_.path())->source.find("MemAvailable"), std::string::npos);
}

TEST_F(HostMemoryTest, IsWhatAnyCgroupOfVersion2Leaves) {
  write("proc/meminfo", "MemAvailable:   4194304 kB\n");
  write("proc/self/cgroup", "0::/job/step\n");
  write("sys/fs/cgroup/job/step/memory.max", "max\n");
  write("sys/fs/cgroup/job/step/memory.current", "1048576\n");
  EXPECT_EQ(available(), 4096 * kMiB) << "no limit";
  write("sys/fs/cgroup/job/memory.max", std::to_string(1000 * kMiB));
  write("sys/fs/cgroup/job/memory.current", std::to_string(300 * kMiB));
  EXPECT_EQ(available(), 700 * kMiB) << "the limit of a parent";
  write("sys/fs/cgroup/job/memory.stat", "anon 5\ninactive_file " + std::to_string(100 * kMiB) + "\n");
  EXPECT_EQ(available(), 800 * kMiB) << "cached files make room";
  EXPECT_NE(host_memory(root_.path())->source.find("/job"), std::string::npos);
}

TEST_F(HostMemoryTest, IsWhatACgroupOfVersion1Leaves) {
  write("proc/meminfo", "MemAvailable:   4194304 kB\n");
  write("proc/self/cgroup", "7:cpuset:/\n4:cpu,memory:/docker/1234\n");
  // As a container sees it: the path is the host's, the files are those of the mount.
  write("sys/fs/cgroup/memory/memory.limit_in_bytes", std::to_string(500 * kMiB));
  write("sys/fs/cgroup/memory/memory.usage_in_bytes", std::to_string(600 * kMiB));
  EXPECT_EQ(available(), 0);
  write("sys/fs/cgroup/memory/memory.stat", "total_inactive_file " + std::to_string(200 * kMiB) + "\n");
  EXPECT_EQ(available(), 100 * kMiB);
  write("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712");
  EXPECT_EQ(available(), 4096 * kMiB);
}

}  // namespace
}  // namespace megalith
