#include "resilience/supervise/log_follower.h"

#include <gtest/gtest.h>

#include "core/file.h"
#include "temp_dir.h"

namespace megalith::resilience {
namespace {

class LogFollowing : public ::testing::Test {
 protected:
  std::string pump(LogFollower& follower) const {
    const std::filesystem::path to = dir_.path() / "to";
    std::FILE* const file = std::fopen(to.c_str(), "w");
    follower.pump(file);
    std::fclose(file);
    return read_text(to);
  }
  void append(const std::string& text) const { File::open_for_appending(log_).write(text); }

  megalith::testing::TempDir dir_;
  std::filesystem::path log_ = dir_.path() / "log";
};

TEST_F(LogFollowing, PassesOnWholeLines) {
  LogFollower follower(log_, "[0] ");
  EXPECT_EQ(pump(follower), "");
  append("one\ntw");
  EXPECT_EQ(pump(follower), "[0] one\n");
  append("o\n\n");
  EXPECT_EQ(pump(follower), "[0] two\n[0] \n");
  EXPECT_EQ(pump(follower), "");
}

TEST_F(LogFollowing, PassesOverWhatWasThere) {
  append("before\n");
  LogFollower follower(log_, "");
  follower.skip();
  append("after\n");
  EXPECT_EQ(pump(follower), "after\n");
}

}  // namespace
}  // namespace megalith::resilience
