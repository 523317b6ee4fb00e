#include "observe/sinks/async_file.h"

#include <gtest/gtest.h>

#include "core/error.h"
#include "core/process/failpoint.h"
#include "observe/files.h"
#include "observe/sinks/log_files.h"
#include "temp_dir.h"

namespace megalith::observe {
namespace {

using testing::TempDir;

class AsyncFileTest : public ::testing::Test {
 protected:
  AsyncFileTest() {
    set_log_console([this](std::string_view line) { log_ += line; });
  }
  ~AsyncFileTest() override {
    set_log_console(nullptr);
    disarm_failpoints();
  }

  TempDir directory_;
  std::string log_;
};

TEST_F(AsyncFileTest, WritesInOrderFromSeveralThreads) {
  {
    AsyncFile file(directory_ / "a");
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t) {
      threads.emplace_back([&file, t] {
        for (int i = 0; i < 1000; ++i) file.push(std::to_string(t) + " " + std::to_string(i) + "\n");
      });
    }
    for (std::thread& thread : threads) thread.join();
    file.flush();
    EXPECT_EQ(test::lines_of(directory_ / "a").size(), 4000u);
    EXPECT_EQ(file.lost(), 0);
  }
  std::vector<int> next(4, 0);
  for (const std::string& line : test::lines_of(directory_ / "a")) {
    EXPECT_EQ(std::stoi(line.substr(2)), next[static_cast<size_t>(line[0] - '0')]++);
  }
}

TEST_F(AsyncFileTest, DestructionWritesEverything) {
  {
    AsyncFile file(directory_ / "a");
    for (int i = 0; i < 500; ++i) file.push("x\n");
  }
  EXPECT_EQ(test::lines_of(directory_ / "a").size(), 500u);
}

TEST_F(AsyncFileTest, DropsWhenTheDiskIsTooSlowAndSaysSo) {
  arm_failpoint("file.write=delay");
  AsyncFile file(directory_ / "a", AsyncFile::Content::lines, 2);
  int64_t kept = 0;
  for (int i = 0; i < 20; ++i) kept += file.push("x\n") ? 1 : 0;
  file.flush();
  EXPECT_LT(kept, 20);
  EXPECT_EQ(file.lost(), 20 - kept);
  EXPECT_EQ(static_cast<int64_t>(test::lines_of(directory_ / "a").size()), kept);
  EXPECT_NE(log_.find("records are dropped"), std::string::npos);
}

TEST_F(AsyncFileTest, SurvivesAFullDisk) {
  arm_failpoint("file.write=io@1");
  AsyncFile file(directory_ / "a");
  file.push("first\n");
  file.flush();
  EXPECT_EQ(file.lost(), 1);
  EXPECT_NE(log_.find("records are lost"), std::string::npos);
  file.push("second\n");
  file.flush();
  EXPECT_EQ(test::bytes_of(directory_ / "a"), "\nsecond\n");
}

TEST_F(AsyncFileTest, ABinaryFileEndsWhereAWriteFailed) {
  arm_failpoint("file.write=io@2");
  AsyncFile file(directory_ / "a", AsyncFile::Content::binary);
  for (const char* record : {"one", "two", "three"}) {
    file.push(record);
    file.flush();
  }
  EXPECT_EQ(test::bytes_of(directory_ / "a"), "one");
  EXPECT_EQ(file.lost(), 2);
}

TEST_F(AsyncFileTest, AnUnwritablePathIsAnError) {
  EXPECT_THROW(AsyncFile(directory_ / "no/such/directory"), Error);
}

TEST_F(AsyncFileTest, TornLines) {
  EXPECT_FALSE(ends_in_torn_line(directory_ / "absent"));
  test::append_to(directory_ / "a", "");
  EXPECT_FALSE(ends_in_torn_line(directory_ / "a"));
  test::append_to(directory_ / "a", "x\n");
  EXPECT_FALSE(ends_in_torn_line(directory_ / "a"));
  test::append_to(directory_ / "a", "y");
  EXPECT_TRUE(ends_in_torn_line(directory_ / "a"));
}

}  // namespace
}  // namespace megalith::observe
