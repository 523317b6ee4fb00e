#include "launch/ranks/local.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <set>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "comm/store/socket.h"
#include "core/clock.h"
#include "core/error.h"

namespace megalith::launch {
namespace {

struct Result {
  int exit_code = 0;
  std::string output;
  std::string errors;
  double seconds = 0.0;

  std::multiset<std::string> lines() const {
    std::multiset<std::string> all;
    std::istringstream text(output);
    for (std::string line; std::getline(text, line);) all.insert(line);
    return all;
  }
};

std::string take_text(std::FILE* file) {
  std::string text;
  std::rewind(file);
  char chunk[4096];
  for (size_t count = 0; (count = std::fread(chunk, 1, sizeof chunk, file)) > 0;) text.append(chunk, count);
  std::fclose(file);
  return text;
}

Result launch_script(int ranks, const std::string& script, double grace = 10.0) {
  std::FILE* output = std::tmpfile();
  std::FILE* errors = std::tmpfile();
  const double begin = monotonic_seconds();
  Result result;
  result.exit_code = launch_local(
      {.ranks = ranks, .command = {"/bin/sh", "-c", script}, .grace = grace, .output = output, .errors = errors});
  result.seconds = monotonic_seconds() - begin;
  result.output = take_text(output);
  result.errors = take_text(errors);
  return result;
}

// Sends a signal to this process after a while, as a scheduler would.
std::thread signal_later(int signal, double seconds) {
  return std::thread([=] {
    std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
    ::kill(::getpid(), signal);
  });
}

using Lines = std::multiset<std::string>;

TEST(LaunchLocal, EachRankKnowsItsPlaceAndItsLinesArePrefixed) {
  const Result result = launch_script(3, "echo $RANK $LOCAL_RANK $WORLD_SIZE $MASTER_ADDR; printf 'no end'");
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_EQ(result.lines(), (Lines{"[0] 0 0 3 127.0.0.1", "[1] 1 1 3 127.0.0.1", "[2] 2 2 3 127.0.0.1", "[0] no end",
                                   "[1] no end", "[2] no end"}));
  EXPECT_EQ(result.errors, "");
}

TEST(LaunchLocal, AllRanksAreToldTheSamePort) {
  const Result result = launch_script(2, "echo $MASTER_PORT | grep -qx '[0-9][0-9]*' && echo $MASTER_PORT");
  ASSERT_EQ(result.lines().size(), 2U);
  EXPECT_EQ(result.lines().begin()->substr(4), result.lines().rbegin()->substr(4));
}

TEST(LaunchLocal, RanksOfOneMachineAmongSeveral) {
  std::FILE* output = std::tmpfile();
  const std::string script =
      "echo $RANK $LOCAL_RANK $WORLD_SIZE $LOCAL_WORLD_SIZE $MASTER_ADDR $MASTER_PORT $NCCL_HOSTID";
  EXPECT_EQ(launch_local({.ranks = 1,
                          .first_rank = 3,
                          .world = 4,
                          .command = {"/bin/sh", "-c", script},
                          .master_address = "node0",
                          .master_port = 6002,
                          .ranks_share_gpus = true,
                          .output = output}),
            0);
  EXPECT_EQ(take_text(output), "[3] 3 0 4 1 node0 6002 3\n");
}

TEST(LaunchLocal, ErrorsGoWhereErrorsGo) {
  const Result result = launch_script(1, "echo bad >&2");
  EXPECT_EQ(result.output, "");
  EXPECT_EQ(result.errors, "[0] bad\n");
}

TEST(LaunchLocal, OneFailureEndsTheOthersAndIsNamed) {
  const Result result = launch_script(3, "if [ $RANK = 1 ]; then sleep 0.2; exit 3; fi; sleep 60");
  EXPECT_EQ(result.exit_code, 3);
  EXPECT_LT(result.seconds, 10.0);
  EXPECT_EQ(result.errors, "rank 1 ended with exit code 3; ending the other ranks\n");
}

// 3: another rank was lost.
TEST(LaunchLocal, TheExitCodeIsOfTheRankThatKnowsWhy) {
  const std::string others =
      "if [ $RANK = 2 ]; then sleep 0.5; exit 3; fi; trap 'sleep 0.2; exit 5' TERM; sleep 60 & wait";
  EXPECT_EQ(launch_script(3, "if [ $RANK = 0 ]; then sleep 60; fi; " + others).exit_code, 5);
  EXPECT_EQ(launch_script(3, "if [ $RANK = 0 ]; then exit 6; fi; sleep 0.3; exit 3").exit_code, 6);
  EXPECT_EQ(launch_script(2, "exit 3").exit_code, 3);
}

TEST(LaunchLocal, ASignalIsNamed) {
  const Result result = launch_script(2, "if [ $RANK = 0 ]; then kill -9 $$; fi; sleep 60");
  EXPECT_EQ(result.exit_code, 128 + SIGKILL);
  EXPECT_NE(result.errors.find("rank 0 was ended by signal 9 (Killed)"), std::string::npos) << result.errors;
}

TEST(LaunchLocal, WhoDoesNotEndIsKilledAfterTheGraceTime) {
  const Result result =
      launch_script(2, "if [ $RANK = 0 ]; then sleep 0.3; exit 1; fi; trap '' TERM; while :; do sleep 1; done", 1.0);
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_GT(result.seconds, 1.0);
  EXPECT_LT(result.seconds, 10.0);
}

TEST(LaunchLocal, StoppedEarlyIsNoFailure) {
  EXPECT_EQ(launch_script(2, "exit 75").exit_code, 75);
  const Result mixed = launch_script(2, "if [ $RANK = 0 ]; then exit 75; fi; sleep 0.3; echo whole");
  EXPECT_EQ(mixed.exit_code, 75);
  EXPECT_EQ(mixed.output, "[1] whole\n");
}

TEST(LaunchLocal, SignalsAreForwarded) {
  for (const auto& [signal, name] : {std::pair{SIGTERM, "TERM"}, {SIGINT, "INT"}, {SIGUSR1, "USR1"}, {SIGHUP, "HUP"}}) {
    std::thread sender = signal_later(signal, 0.5);
    const Result result =
        launch_script(2, std::string("trap 'echo heard; exit 75' ") + name + "; while :; do sleep 0.05; done");
    sender.join();
    EXPECT_EQ(result.exit_code, 75);
    EXPECT_EQ(result.lines(), (Lines{"[0] heard", "[1] heard"}));
  }
}

TEST(LaunchLocal, RanksThatSaveAreEndedWhileTheyStart) {
  std::thread sender = signal_later(SIGTERM, 0.5);
  std::FILE* errors = std::tmpfile();
  EXPECT_EQ(launch_local({.ranks = 2,
                          .command = {"/bin/sh", "-c", "trap '' TERM; while :; do sleep 0.05; done"},
                          .ranks_save = true,
                          .errors = errors}),
            75);
  sender.join();
  EXPECT_EQ(take_text(errors), "SIGTERM: stopped before the first step\n");
}

TEST(LaunchLocal, ASecretTravelsOnASocketAlone) {
  ::setenv("MEGALITH_STORE_SECRET", "loud", 1);
  const Result result = launch_script(
      2, "[ -S /proc/self/fd/$MEGALITH_LAUNCHER_FD ] && echo a socket; echo secret:$MEGALITH_STORE_SECRET");
  ::unsetenv("MEGALITH_STORE_SECRET");
  EXPECT_EQ(result.lines(), (Lines{"[0] a socket", "[1] a socket", "[0] secret:", "[1] secret:"}));
}

TEST(LaunchLocal, ATakenMasterPortIsAUserError) {
  const comm::Socket taken = comm::listen_on("127.0.0.1", 0);
  try {
    launch_local({.ranks = 1, .command = {"/bin/true"}, .master_port = taken.local_port()});
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::user) << error.what();
  }
}

// A library's threads block no signal, and the kernel may choose one of them.
TEST(LaunchLocal, NoOtherThreadTakesASignalAway) {
  std::atomic<bool> done = false;
  std::vector<std::thread> others;
  for (int i = 0; i < 4; ++i) {
    others.emplace_back([&] {
      while (!done) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    });
  }
  for (int i = 0; i < 20; ++i) {
    const Result result = launch_script(2, "sleep 0.02");
    EXPECT_EQ(result.exit_code, 0);
    EXPECT_LT(result.seconds, 30.0);  // a lost signal is waited for longer
  }
  std::thread sender = signal_later(SIGTERM, 0.2);
  EXPECT_EQ(launch_script(1, "trap 'exit 75' TERM; while :; do sleep 0.05; done").exit_code, 75);
  sender.join();
  done = true;
  for (std::thread& other : others) other.join();
}

TEST(LaunchLocal, MuchOutputComesOutWhole) {
  const Result result = launch_script(2, "i=0; while [ $i -lt 5000 ]; do echo line $i; i=$((i+1)); done");
  EXPECT_EQ(result.lines().size(), 10000U);
  EXPECT_EQ(result.lines().count("[1] line 4999"), 1U);
}

TEST(LaunchLocal, RefusesWhatCannotRun) {
  EXPECT_THROW(launch_local({.ranks = 0, .command = {"/bin/true"}}), Error);
  EXPECT_THROW(launch_local({.ranks = 1}), Error);
  EXPECT_THROW(launch_local({.ranks = 1, .command = {"/no/such/program"}}), Error);
}

}  // namespace
}  // namespace megalith::launch
