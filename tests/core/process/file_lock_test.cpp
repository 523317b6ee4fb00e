#include "core/process/file_lock.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include "core/error.h"
#include "expect_error.h"
#include "temp_dir.h"

namespace megalith {
namespace {

using testing::TempDir;

TEST(FileLock, LetsOneInOrSeveralReaders) {
  const TempDir dir;
  const auto open = [&] { return File::open_for_appending(dir / "lock"); };
  {
    const File first = open();
    EXPECT_EQ(lock(first, LockMode::shared), LockResult::taken);
    const File second = open();
    EXPECT_EQ(lock(second, LockMode::shared), LockResult::taken);
    EXPECT_EQ(try_lock(open()), LockResult::busy);
  }
  const File alone = open();
  EXPECT_EQ(try_lock(alone), LockResult::taken);
  expect_error(ErrorKind::user, {"another process", "lock"}, [&] { lock_or_refuse(open()); });
}

TEST(FileLock, RefusesAFileThatIsNoLongerThere) {
  const TempDir dir;
  const File file = File::open_for_appending(dir / "file.part");
  publish(dir / "file.part", dir / "file");
  expect_error(ErrorKind::user, {"another process", "file.part"}, [&] { lock_or_refuse(file); });
}

TEST(ReplaceFileAmongMany, LeavesOneContentWhole) {
  const TempDir dir;
  const std::string content(100'000, 'x');
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (int j = 0; j < 10; ++j) replace_file_among_many(dir / "file", content);
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(read_text(dir / "file"), content);
  EXPECT_EQ(dir.files(), 1);
}

TEST(RemoveStalePart, SparesWhatSomebodyIsWriting) {
  const TempDir dir;
  {
    const File file = File::open_for_appending(dir / "file.part");
    EXPECT_EQ(try_lock(file), LockResult::taken);
    remove_stale_part(dir / "file");
    EXPECT_EQ(dir.files(), 1);
  }
  remove_stale_part(dir / "file");
  EXPECT_EQ(dir.files(), 0);
  remove_stale_part(dir / "file");
}

}  // namespace
}  // namespace megalith
