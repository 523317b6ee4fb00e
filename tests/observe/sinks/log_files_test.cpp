#include "observe/sinks/log_files.h"

#include <gtest/gtest.h>

#include "core/error.h"
#include "observe/files.h"
#include "temp_dir.h"

namespace megalith::observe {
namespace {

// Digits as 0, single level letters as A.
std::string shape_of(std::string text) {
  for (char& c : text) c = c >= '0' && c <= '9' ? '0' : c;
  if (text.size() > 10) text[10] = text[10] == 'I' || text[10] == 'W' || text[10] == 'E' ? 'A' : text[10];
  return text;
}

TEST(LogFiles, EverythingInOneFileAndWarningsInTheOther) {
  const testing::TempDir directory;
  std::string console;
  set_log_console([&console](std::string_view line) { console += line; });
  set_up_log({.directory = directory.path(), .global_rank = 3, .local_rank = 1});
  log_info("started");
  log_warning("careful {}");
  log_error("broken \x1b[2J\r");
  set_up_log({});
  set_log_console(nullptr);

  const auto all = test::lines_of(directory / "nemo_log_globalrank-3_localrank-1.txt");
  ASSERT_EQ(all.size(), 3u);
  for (const std::string& line : all)
    EXPECT_EQ(shape_of(line.substr(0, 33)), "[Megalith A 0000-00-00 00:00:00] ") << line;
  EXPECT_TRUE(all[0].starts_with("[Megalith I ") && all[0].ends_with("] started")) << all[0];
  EXPECT_TRUE(all[1].ends_with("] careful {}")) << all[1];
  EXPECT_TRUE(all[2].ends_with("] broken \\x1b[2J\\x0d")) << all[2];
  const auto errors = test::lines_of(directory / "nemo_error_logs.txt");
  EXPECT_EQ(errors, std::vector<std::string>(all.begin() + 1, all.end()));
  EXPECT_EQ(console, all[0] + "\n" + all[1] + "\n" + all[2] + "\n");
}

TEST(LogFiles, AMissingPlaceIsAnError) {
  const testing::TempDir directory;
  std::ofstream(directory / "file") << "x";
  EXPECT_THROW(set_up_log({.directory = directory / "file/below"}), Error);
}

TEST(LogFiles, AFullDiskIsSaidOnceInPlainWords) {
  const testing::TempDir directory;
  std::filesystem::create_symlink("/dev/full", directory / "nemo_error_logs.txt");
  set_log_console([](std::string_view) {});
  set_up_log({.directory = directory.path()});
  ::testing::internal::CaptureStderr();
  for (int i = 0; i < 3; ++i) log_warning("careful");
  set_up_log({});
  set_log_console(nullptr);
  const std::string said = ::testing::internal::GetCapturedStderr();
  EXPECT_TRUE(said.starts_with("a log loses lines: ")) << said;
  EXPECT_NE(said.find("nemo_error_logs.txt: No space left on device\n"), std::string::npos) << said;
  EXPECT_EQ(std::count(said.begin(), said.end(), '\n'), 1) << said;
}

}  // namespace
}  // namespace megalith::observe
