#include "resilience/record/control_directory.h"

#include <gtest/gtest.h>

#include <thread>

#include "expect_error.h"
#include "temp_dir.h"

namespace megalith::resilience {
namespace {

TEST(ControlDirectory, FilesAreCreatedOnce) {
  const megalith::testing::TempDir run;
  DiskControlDirectory directory(run.path());
  EXPECT_TRUE(directory.create("roster-000001.json", "first"));
  EXPECT_FALSE(directory.create("roster-000001.json", "second"));
  EXPECT_EQ(directory.read("roster-000001.json"), "first");
  EXPECT_FALSE(directory.read("roster-000002.json"));
  EXPECT_EQ(directory.list(), std::vector<std::string>{"roster-000001.json"}) << "no part files are left";
}

TEST(ControlDirectory, OfManyAtOnceOneIsFirst) {
  const megalith::testing::TempDir run;
  DiskControlDirectory directory(run.path());
  std::atomic<int> winners = 0;
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 8; ++thread) {
    threads.emplace_back([&] { winners += directory.create_appended("term-000001.jsonl") != nullptr; });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(winners, 1);
}

TEST(ControlDirectory, NumbersOfNames) {
  const megalith::testing::TempDir run;
  DiskControlDirectory directory(run.path());
  for (const char* name : {"term-000002.jsonl", "term-1000000.jsonl", "term-2.jsonl", "term-00000x.jsonl",
                           "term-000003.json", "roster-000009.json"}) {
    directory.create(name, "");
  }
  EXPECT_EQ(numbered_files(directory, "term-", ".jsonl"), (std::vector<int64_t>{2, 1000000}));
}

TEST(ControlDirectory, ARunDirectoryThatIsNotThere) {
  const megalith::testing::TempDir run;
  expect_error(ErrorKind::io, {"gone", "run directory"}, [&] { DiskControlDirectory directory(run / "gone"); });
  DiskControlDirectory directory(run.path());
  std::filesystem::remove_all(run.path());
  expect_error(ErrorKind::io, {"control"}, [&] { directory.list(); });
  expect_error(ErrorKind::io, {"roster-000001.json"}, [&] { directory.create("roster-000001.json", ""); });
}

}  // namespace
}  // namespace megalith::resilience
