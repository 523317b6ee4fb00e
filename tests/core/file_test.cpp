#include "core/file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <array>

#include "core/error.h"
#include "core/process/failpoint.h"
#include "expect_error.h"
#include "temp_dir.h"

namespace megalith {
namespace {

TEST(File, ReplaceLeavesTheOldContentWhenTheWriteFails) {
  const testing::TempDir dir;
  replace_file(dir / "config", "old");
  arm_failpoint("file.write=io");
  EXPECT_THROW(replace_file(dir / "config", "new"), Error);
  disarm_failpoints();
  EXPECT_EQ(read_text(dir / "config"), "old");
  arm_failpoint("file.rename=io");
  EXPECT_THROW(replace_file(dir / "config", "new"), Error);
  disarm_failpoints();
  EXPECT_EQ(read_text(dir / "config"), "old");
  EXPECT_EQ(dir.files(), 1);
  replace_file(dir / "config", "new");
  EXPECT_EQ(read_text(dir / "config"), "new");
}

TEST(File, FifosAndDevicesAreNotRead) {
  const testing::TempDir dir;
  ASSERT_EQ(::mkfifo((dir / "fifo").c_str(), 0600), 0);
  expect_error(ErrorKind::user, {dir / "fifo", "FIFO"}, [&] { File::open_for_reading(dir / "fifo"); });
  expect_error(ErrorKind::user, {"/dev/null", "device"}, [] { File::open_for_reading("/dev/null"); });
}

TEST(File, ReadingBeyondTheEndIsADataErrorThatNamesTheFile) {
  const testing::TempDir dir;
  replace_file(dir / "short", "abc");
  const File file = File::open_for_reading(dir / "short");
  std::array<std::byte, 4> buffer{};
  expect_error(ErrorKind::data, {"short is truncated"}, [&] { file.read_at(0, buffer); });
}

TEST(File, CreateNewNeverOverwrites) {
  const testing::TempDir dir;
  replace_file(dir / "there", "abc");
  EXPECT_THROW(File::create_new(dir / "there"), Error);
  EXPECT_THROW(File::open_for_reading(dir / "missing"), Error);
}

TEST(File, TheUmaskSaysForWhomItIs) {
  const testing::TempDir dir;
  const mode_t before = ::umask(027);
  replace_file(dir / "file", "");
  make_directory(dir / "directory");
  make_private_directory(dir / "private");
  ::umask(before);
  using std::filesystem::perms;
  EXPECT_EQ(std::filesystem::status(dir / "file").permissions(), perms(0640));
  EXPECT_EQ(std::filesystem::status(dir / "directory").permissions(), perms(0750));
  EXPECT_EQ(std::filesystem::status(dir / "private").permissions(), perms(0700));
}

TEST(File, ReplaceFollowsNoLink) {
  const testing::TempDir dir;
  replace_file(dir / "other", "untouched");
  std::filesystem::create_symlink(dir / "other", dir / "config.part");
  replace_file(dir / "config", "new");
  EXPECT_EQ(read_text(dir / "other"), "untouched");
  EXPECT_EQ(read_text(dir / "config"), "new");
}

TEST(File, PartFilesBeginEmptyAndArePublishedWhole) {
  const testing::TempDir dir;
  EXPECT_EQ(size_if_there(dir / "file"), -1);
  replace_file(dir / "file", "old");
  replace_file(dir / "file.part", "left by a process that was killed");
  {
    File part = open_part_file(dir / "file.part");
    part.write("new content");
    part.truncate(3);
  }
  publish(dir / "file.part", dir / "file");
  EXPECT_EQ(read_text(dir / "file"), "new");
  EXPECT_EQ(size_if_there(dir / "file"), 3);
  remove_if_there(dir / "file");
  remove_if_there(dir / "file");
  EXPECT_EQ(dir.files(), 0);
  expect_error(ErrorKind::io, {"cannot rename", "file.part"}, [&] { publish(dir / "file.part", dir / "file"); });
}

TEST(MakeDirectory, RefusesAFileInItsPlace) {
  const testing::TempDir dir;
  replace_file(dir / "file", "");
  expect_error(ErrorKind::user, {"file exists and is not a directory"}, [&] { make_directory(dir / "file"); });
  expect_error(ErrorKind::user, {"not a directory"}, [&] { make_parent_directory(dir.path() / "file" / "in_it"); });
  make_parent_directory(dir.path() / "parent" / "file");
  EXPECT_TRUE(std::filesystem::is_empty(dir / "parent"));
  make_directory(dir.path() / "a" / "b");
  EXPECT_TRUE(std::filesystem::is_directory(dir.path() / "a" / "b"));
}

}  // namespace
}  // namespace megalith
