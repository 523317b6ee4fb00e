#include "core/process/stop_signals.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <functional>
#include <thread>

#include "core/process/launcher_line.h"

namespace megalith {
namespace {

struct Ended {
  int exit_code = -1;  // -1: a signal ended it
  int signal = 0;
  std::string errors;
};

// A process of its own, since signals are.
Ended end_of(const std::function<void()>& body) {
  int ends[2] = {};
  if (::pipe(ends) != 0) return {};
  const pid_t process = ::fork();
  if (process == 0) {
    ::dup2(ends[1], STDERR_FILENO);
    ::close(ends[1]);
    body();
    ::_exit(0);
  }
  ::close(ends[1]);
  Ended ended;
  char chunk[256];
  for (ssize_t count = 0; (count = ::read(ends[0], chunk, sizeof chunk)) > 0;)
    ended.errors.append(chunk, static_cast<size_t>(count));
  ::close(ends[0]);
  int status = 0;
  ::waitpid(process, &status, 0);
  if (WIFEXITED(status)) ended.exit_code = WEXITSTATUS(status);
  if (WIFSIGNALED(status)) ended.signal = WTERMSIG(status);
  return ended;
}

void pause(double seconds) {
  ::usleep(static_cast<useconds_t>(seconds * 1e6));
}

TEST(StopSignals, BeforeAnythingIsToBeSavedTheProcessEndsAtOnce) {
  for (const auto& [signal, name] : kStopSignals) {
    const Ended ended = end_of([number = signal] {
      stop_signals::take({});
      std::raise(number);
    });
    EXPECT_EQ(ended.exit_code, 75);
    EXPECT_EQ(ended.errors, std::string(name) + ": stopped before the first step\n");
  }
}

TEST(StopSignals, TheFirstIsNotedAndAnswered) {
  for (const auto& [signal, name] : kStopSignals) {
    const Ended ended = end_of([number = signal, name = name] {
      stop_signals::take({});
      stop_signals::hold();
      if (!stop_signals::reason().empty()) ::_exit(1);
      for (int i = 0; i < 3; ++i) std::raise(number);
      if (stop_signals::reason() != name) ::_exit(2);
    });
    EXPECT_EQ(ended.exit_code, 0);
    EXPECT_TRUE(ended.errors.starts_with(std::string(name) + ": stopping after this step, then saving"))
        << ended.errors;
    EXPECT_EQ(ended.errors.find('\n'), ended.errors.size() - 1) << "once: " << ended.errors;
  }
}

TEST(StopSignals, OnlyASecondInterruptQuits) {
  const Ended ended = end_of([] {
    stop_signals::take({});
    stop_signals::hold();
    std::raise(SIGTERM);
    std::raise(SIGINT);
    pause(1.1);
    for (const int signal : {SIGTERM, SIGUSR1, SIGHUP}) std::raise(signal);
    std::raise(SIGINT);
    pause(10.0);
  });
  EXPECT_EQ(ended.signal, SIGINT);
  EXPECT_EQ(ended.errors,
            "SIGTERM: stopping after this step, then saving\n"
            "SIGINT: stopping after this step, then saving; press again to quit without saving\n"
            "SIGINT again: quitting without saving\n");
}

TEST(StopSignals, ARankLeavesThemToItsLauncher) {
  const Ended ended = end_of([] {
    int ends[2] = {};
    if (::socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends) != 0) ::_exit(1);
    LauncherLine launcher(ends[0]);
    LauncherLine rank(ends[1]);
    stop_signals::take({.launcher = &rank, .speaks = false});
    std::raise(SIGTERM);
    if (launcher.receive() != SIGTERM || !stop_signals::reason().empty()) ::_exit(2);
    stop_signals::begin_running();
    if (launcher.receive() != LauncherLine::kRankIsRunning) ::_exit(3);
    launcher.send(SIGUSR1);
    if (stop_signals::reason() != "SIGUSR1") ::_exit(4);
  });
  EXPECT_EQ(ended.exit_code, 0);
  EXPECT_EQ(ended.errors, "");
}

// As one that a library has started before main().
TEST(StopSignals, OneThatReachesAnotherThreadIsHandedOnToWhoAwaitsIt) {
  const Ended ended = end_of([] {
    std::thread other([] { std::this_thread::sleep_for(std::chrono::hours(1)); });
    stop_signals::await_in_this_thread();
    if (stop_signals::next_awaited() != 0) ::_exit(1);
    ::kill(::getpid(), SIGTERM);
    int signal = 0;
    for (int tries = 0; signal == 0 && tries < 1000; ++tries) {
      signal = stop_signals::next_awaited();
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    ::_exit(signal == SIGTERM ? 0 : 2);
  });
  EXPECT_EQ(ended.exit_code, 0);
  EXPECT_EQ(ended.signal, 0);
}

TEST(StopSignals, ARankWhoseLauncherIsGoneStops) {
  const Ended ended = end_of([] {
    int ends[2] = {};
    if (::socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends) != 0) ::_exit(1);
    LauncherLine rank(ends[1]);
    stop_signals::take({.launcher = &rank, .speaks = false});
    stop_signals::begin_running();
    ::close(ends[0]);
    if (stop_signals::reason() != "the launcher is gone") ::_exit(2);
    std::raise(SIGTERM);
    if (stop_signals::reason() != "SIGTERM") ::_exit(3);
  });
  EXPECT_EQ(ended.exit_code, 0);
}

}  // namespace
}  // namespace megalith
