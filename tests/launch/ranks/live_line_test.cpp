#include "launch/ranks/live_line.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <string>

#include "launch/ranks/rank_process.h"

namespace megalith::launch {
namespace {

// A rank's pipe and the terminal that its lines go to.
class LiveLineTest : public ::testing::Test {
 protected:
  ~LiveLineTest() override {
    ::close(pipe_[1]);
    std::fclose(terminal_);
  }

  static std::array<int, 2> make_pipe() {
    std::array<int, 2> ends{};
    EXPECT_EQ(::pipe2(ends.data(), O_NONBLOCK), 0);
    return ends;
  }

  // What the terminal receives when the rank writes this.
  std::string after(const std::string& written) {
    EXPECT_EQ(::write(pipe_[1], written.data(), written.size()), std::ssize(written));
    lines_.pump();
    return received();
  }
  std::string received() {
    std::string text;
    std::fseek(terminal_, seen_, SEEK_SET);
    char chunk[4096];
    for (size_t count = 0; (count = std::fread(chunk, 1, sizeof chunk, terminal_)) > 0;) text.append(chunk, count);
    seen_ = std::ftell(terminal_);
    return text;
  }

  std::array<int, 2> pipe_ = make_pipe();
  std::FILE* terminal_ = std::tmpfile();
  long seen_ = 0;
  LiveLine live_{terminal_};
  PrefixedLines lines_{pipe_[0], "[0] ", terminal_, &live_};
};

TEST_F(LiveLineTest, IsDrawnAgainAndStaysWhenItEnds) {
  EXPECT_EQ(after("hello\n"), "[0] hello\n");
  EXPECT_EQ(after("\r 1%\x1b[K"), "\r[0]  1%\x1b[K");
  EXPECT_EQ(after("\r 2%"), "");  // half of it
  EXPECT_EQ(after("\x1b[K"), "\r[0]  2%\x1b[K");
  EXPECT_EQ(after("\n"), "\r\x1b[K[0]  2%\n");
  EXPECT_EQ(after("done\n"), "[0] done\n");
}

TEST_F(LiveLineTest, StaysBelowOtherLines) {
  after("\r 1%\x1b[K");
  live_.print(terminal_, "[1] hello");
  EXPECT_EQ(received(), "\r\x1b[K[1] hello\n\r[0]  1%\x1b[K");
  // As the rank itself writes above its line.
  EXPECT_EQ(after("\r\x1b[Knews\n\r 2%\x1b[K"), "\r\x1b[K[0] news\n\r[0]  1%\x1b[K\r[0]  2%\x1b[K");
}

TEST_F(LiveLineTest, OfARankThatIsGoneStays) {
  after("\r 1%\x1b[K");
  lines_.finish();
  EXPECT_EQ(received(), "\r\x1b[K[0]  1%\n");
}

}  // namespace
}  // namespace megalith::launch
