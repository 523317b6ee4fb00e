#include "core/process/shared_memory.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "core/error.h"
#include "expect_error.h"
#include "temp_dir.h"

namespace megalith {
namespace {

constexpr int64_t kBytes = (int64_t{1} << 20) + 5;

TEST(SharedMemory, OutlivesItsOwnerInAFile) {
  const testing::TempDir directory;
  const auto path = directory.path() / "image";
  {
    const SharedMemory memory(path, kBytes, Device::cpu);
    ASSERT_EQ(std::ssize(memory.bytes()), kBytes);
    EXPECT_TRUE(
        std::all_of(memory.bytes().begin(), memory.bytes().end(), [](std::byte b) { return b == std::byte{0}; }));
    memory.bytes().front() = std::byte{7};
    memory.bytes().back() = std::byte{9};
  }
  const SharedMemory again(path, kBytes, Device::cpu);
  EXPECT_EQ(again.bytes().front(), std::byte{7});
  EXPECT_EQ(again.bytes().back(), std::byte{9});
}

TEST(SharedMemory, NeedsNoFile) {
  const SharedMemory memory("", kBytes, Device::cpu);
  memory.bytes().back() = std::byte{1};
  EXPECT_EQ(memory.bytes().front(), std::byte{0});
}

TEST(SharedMemory, NoRoomIsAnErrorThatLeavesNothing) {
  const testing::TempDir directory;
  const auto path = directory.path() / "image";
  expect_error(ErrorKind::io, {path.string()}, [&] { SharedMemory(path, int64_t{1} << 62, Device::cpu); });
  EXPECT_FALSE(std::filesystem::exists(path) && std::filesystem::file_size(path) > 0);
}

TEST(SharedMemory, FollowsNoLink) {
  const testing::TempDir directory;
  std::filesystem::create_symlink(directory.path() / "elsewhere", directory.path() / "image");
  expect_error(ErrorKind::io, {"image"}, [&] { SharedMemory(directory.path() / "image", kBytes, Device::cpu); });
  EXPECT_FALSE(std::filesystem::exists(directory.path() / "elsewhere"));
}

}  // namespace
}  // namespace megalith
