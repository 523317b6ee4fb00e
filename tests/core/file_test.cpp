#include "core/file.h"

#include <gtest/gtest.h>

#include <array>

#include "core/error.h"
#include "core/failpoint.h"
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
  replace_file(dir / "config", "new");
  EXPECT_EQ(read_text(dir / "config"), "new");
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

TEST(MakeDirectory, RefusesAFileInItsPlace) {
  const testing::TempDir dir;
  replace_file(dir / "file", "");
  EXPECT_THROW(make_directory(dir / "file"), Error);
  make_directory(dir.path() / "a" / "b");
  EXPECT_TRUE(std::filesystem::is_directory(dir.path() / "a" / "b"));
}

}  // namespace
}  // namespace megalith
