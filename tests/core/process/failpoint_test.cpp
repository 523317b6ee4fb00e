#include "core/process/failpoint.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <string>

#include "core/clock.h"
#include "expect_error.h"

namespace megalith {
namespace {

class Failpoint : public ::testing::Test {
 protected:
  void SetUp() override {
    set_failpoint_rank(-1, 0);
    set_failpoint_step(-1);
  }
  void TearDown() override {
    SetUp();
    disarm_failpoints();
  }
};

using FailpointDeathTest = Failpoint;

TEST_F(Failpoint, ActsAtTheCountItWasAskedFor) {
  arm_failpoint("place=io@2");
  EXPECT_NO_THROW(pass_failpoint("place"));
  EXPECT_THROW(pass_failpoint("place"), Error);
  EXPECT_NO_THROW(pass_failpoint("place"));
  EXPECT_NO_THROW(pass_failpoint("elsewhere"));
}

TEST_F(Failpoint, HitsTheRankStepAndGenerationItAimsAt) {
  arm_failpoint("place=throw@step=7,rank=3,generation=2");
  EXPECT_NO_THROW(pass_failpoint("place")) << "a process without rank and step";
  for (const int64_t generation : {1, 2}) {
    for (const int64_t rank : {2, 3}) {
      set_failpoint_rank(rank, generation);
      for (const int64_t step : {6, 7, 8}) {
        set_failpoint_step(step);
        if (generation == 2 && rank == 3 && step == 7) {
          expect_error(ErrorKind::internal, {"place", "injected exception"}, [] { pass_failpoint("place"); });
        } else {
          EXPECT_NO_THROW(pass_failpoint("place")) << generation << " " << rank << " " << step;
        }
      }
    }
  }
}

TEST_F(Failpoint, AsksThePlaceForWorkWithoutEnd) {
  EXPECT_FALSE(pass_failpoint("place"));
  arm_failpoint("place=kernel@step=3");
  EXPECT_FALSE(pass_failpoint("place"));
  set_failpoint_step(3);
  EXPECT_TRUE(pass_failpoint("place"));
}

TEST_F(Failpoint, ManyAreArmedAtOnce) {
  arm_failpoints("own.a=io;theirs.a=throw;;own.b=throw", "own.");
  expect_error(ErrorKind::io, {"own.a"}, [] { pass_failpoint("own.a"); });
  expect_error(ErrorKind::internal, {"own.b"}, [] { pass_failpoint("own.b"); });
  EXPECT_NO_THROW(pass_failpoint("theirs.a"));
  arm_failpoints("theirs.a=throw");
  expect_error(ErrorKind::internal, {"theirs.a"}, [] { pass_failpoint("theirs.a"); });
}

TEST_F(Failpoint, CountsOnlyPassingsAtWhichItAims) {
  arm_failpoint("place=io@2,step=5");
  set_failpoint_step(4);
  EXPECT_NO_THROW(pass_failpoint("place"));
  set_failpoint_step(5);
  EXPECT_NO_THROW(pass_failpoint("place"));
  EXPECT_THROW(pass_failpoint("place"), Error);
}

TEST_F(Failpoint, SeveralShareAPlace) {
  arm_failpoint("place=io@rank=1");
  arm_failpoint("place=throw@rank=2");
  set_failpoint_rank(2, 0);
  expect_error(ErrorKind::internal, {"place"}, [] { pass_failpoint("place"); });
  set_failpoint_rank(1, 0);
  expect_error(ErrorKind::io, {"place"}, [] { pass_failpoint("place"); });
}

TEST_F(Failpoint, SleepsAsLongAsItIsTold) {
  arm_failpoint("place=sleep=0.05");
  const double begin = monotonic_seconds();
  pass_failpoint("place");
  EXPECT_GE(monotonic_seconds() - begin, 0.05);
}

TEST_F(FailpointDeathTest, EndsTheProcessInEveryWay) {
  const auto die = [](const char* action) {
    arm_failpoint(std::string("place=") + action);
    pass_failpoint("place");
  };
  EXPECT_EXIT(die("exit"), ::testing::ExitedWithCode(1), "");
  EXPECT_EXIT(die("exit0"), ::testing::ExitedWithCode(0), "");
  EXPECT_EXIT(die("abort"), ::testing::KilledBySignal(SIGABRT), "");
  EXPECT_EXIT(die("segv"), ::testing::KilledBySignal(SIGSEGV), "failpoint place: segv at [0-9]+");
  EXPECT_EXIT(die("sigterm"), ::testing::KilledBySignal(SIGTERM), "");
}

// Until the alarm ends it.
TEST_F(FailpointDeathTest, HangsAndSpinsForEver) {
  const auto stay = [](const char* action) {
    ::ualarm(50'000, 0);
    arm_failpoint(std::string("place=") + action);
    pass_failpoint("place");
  };
  EXPECT_EXIT(stay("hang"), ::testing::KilledBySignal(SIGALRM), "failpoint place: hang at [0-9]+");
  EXPECT_EXIT(stay("spin"), ::testing::KilledBySignal(SIGALRM), "");
}

TEST_F(Failpoint, RefusesBadText) {
  for (const char* text : {"place",
                           "=io",
                           "place=",
                           "place=@2",
                           "place=explode",
                           "place=io@",
                           "place=io@0",
                           "place=io@2x",
                           "place=io=3",
                           "place=sleep",
                           "place=sleep=",
                           "place=sleep=x",
                           "place=sleep=-1",
                           "place=sleep=nan",
                           "place=hang@rank",
                           "place=hang@rank=",
                           "place=hang@rank=-1",
                           "place=hang@node=1",
                           "place=hang@rank=1,",
                           "place=hang@,rank=1"}) {
    expect_error(ErrorKind::user, {text}, [&] { arm_failpoint(text); });
  }
}

}  // namespace
}  // namespace megalith
