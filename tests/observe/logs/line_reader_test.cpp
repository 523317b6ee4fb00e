#include "observe/logs/line_reader.h"

#include <gtest/gtest.h>

#include <chrono>

#include "observe/files.h"
#include "temp_dir.h"

namespace megalith::observe {
namespace {

using testing::TempDir;

std::vector<std::string> read_all(const std::filesystem::path& path, int64_t* overlong = nullptr) {
  LineReader reader(path);
  std::vector<std::string> lines;
  while (const auto line = reader.next()) lines.emplace_back(*line);
  if (overlong != nullptr) *overlong = reader.overlong_lines();
  return lines;
}

TEST(LineReader, EndsLinesAtBothEnds) {
  const TempDir directory;
  const auto path = directory / "log";
  test::append_to(path, "one\ntwo\r\n\nthree\rfour\rtorn");
  EXPECT_EQ(read_all(path), (std::vector<std::string>{"one", "two", "three", "four", "torn"}));
}

TEST(LineReader, LinesCrossTheBuffersEnd) {
  const TempDir directory;
  const auto path = directory / "log";
  std::string text;
  std::vector<std::string> expected;
  for (size_t i = 0; text.size() < 2 * LineReader::kLongestLine; ++i) {
    expected.push_back(std::to_string(i) + std::string(i * 37 % 90'001, 'x'));
    text += expected.back() + "\n";
  }
  test::append_to(path, text);
  EXPECT_EQ(read_all(path), expected);
}

TEST(LineReader, LeavesOutOverlongLines) {
  const TempDir directory;
  const auto path = directory / "log";
  test::append_to(path, "a\n" + std::string(3 * LineReader::kLongestLine, 'x') + "\nb\n" +
                            std::string(LineReader::kLongestLine + 1, 'y'));
  int64_t overlong = 0;
  EXPECT_EQ(read_all(path, &overlong), (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(overlong, 2);
}

// A progress bar that was redrawn for days: one line to most programs.
TEST(LineReader, IsAsFastWithoutLineFeeds) {
  const TempDir directory;
  const auto path = directory / "log";
  std::string text;
  for (int i = 0; i < 200'000; ++i) text += "Epoch 0: |   | 1/50, train_step_timing in s=5.9]\r";
  test::append_to(path, text);
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_EQ(read_all(path).size(), 200'000u);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(5));
}

TEST(LineReader, AnEmptyFileHasNone) {
  const TempDir directory;
  const auto path = directory / "log";
  test::append_to(path, "");
  EXPECT_TRUE(read_all(path).empty());
}

}  // namespace
}  // namespace megalith::observe
