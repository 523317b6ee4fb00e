#include "core/process/launcher_line.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <array>
#include <chrono>
#include <future>
#include <thread>

#include "expect_error.h"

namespace megalith {
namespace {

// The rank's end is a plain descriptor until it is inherited.
struct Ends {
  Ends() {
    std::array<int, 2> ends{};
    if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()) != 0) io_error_errno("socketpair");
    launcher.emplace(ends[0]);
    rank = ends[1];
  }
  std::optional<LauncherLine> launcher;
  int rank = -1;
};

TEST(LauncherLine, BringsTheSecretThenTextsThenWords) {
  const Ends ends;
  ends.launcher->send_secret("hush");
  ends.launcher->send_text("4 ranks");
  ends.launcher->send_text("");
  ends.launcher->send(15);
  LauncherLine rank = LauncherLine::inherit(ends.rank);
  EXPECT_EQ(rank.secret(), "hush");
  EXPECT_EQ(rank.await_text(5.0), "4 ranks");
  EXPECT_EQ(rank.await_text(5.0), "");
  EXPECT_EQ(rank.receive(), char{15});
  EXPECT_EQ(rank.await_text(0.01), std::nullopt) << "nothing has come";
  EXPECT_FALSE(rank.is_over());
}

TEST(LauncherLine, WaitsForTheSecret) {
  const Ends ends;
  auto rank = std::async(std::launch::async, [&] { return LauncherLine::inherit(ends.rank).secret(); });
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  ends.launcher->send_secret("late");
  EXPECT_EQ(rank.get(), "late");
}

TEST(LauncherLine, KnowsThatTheOtherSideIsGone) {
  Ends ends;
  ends.launcher->send_secret("hush");
  LauncherLine rank = LauncherLine::inherit(ends.rank);
  ends.launcher.reset();
  EXPECT_EQ(rank.await_text(20.0), std::nullopt);
  EXPECT_TRUE(rank.is_over());
}

TEST(LauncherLine, RefusesDescriptorsOfOtherThings) {
  expect_error(ErrorKind::user, {"MEGALITH_LAUNCHER_FD=9999", "no open descriptor"},
               [] { LauncherLine::inherit(9999); });
  const int file = ::open("/dev/zero", O_RDONLY);
  expect_error(ErrorKind::user, {"not the line of a launcher"}, [&] { LauncherLine::inherit(file); });
  Ends ends;
  ends.launcher.reset();
  expect_error(ErrorKind::user, {"not the line of a launcher"}, [&] { LauncherLine::inherit(ends.rank); });
}

TEST(LauncherLine, RefusesATextThatIsTooLong) {
  const Ends ends;
  expect_error(ErrorKind::user, {"a text of 4096 bytes is too long"},
               [&] { ends.launcher->send_text(std::string(4096, 'x')); });
}

}  // namespace
}  // namespace megalith
