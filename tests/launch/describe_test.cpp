#include "launch/describe.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/clock.h"
#include "core/file.h"
#include "temp_dir.h"

namespace megalith::launch {
namespace {

using ::testing::HasSubstr;

TEST(Describe, AStartThatDidNotLiveToSayWhyIsToldWhileTheJobWaits) {
  const megalith::testing::TempDir folder;
  const std::string start = "2026-11-18T12:00:00+0000 start 0 4711 n[1-2]\n";
  replace_file(folder / "journal", start);
  LaunchRecord record{.name = "gpt", .kind = "slurm", .ids = {"4711"}, .folder = folder.path()};
  const std::vector<JobState> waits = {{.id = "4711", .phase = JobState::Phase::waiting, .why = "BeginTime"}};
  EXPECT_EQ(state_in_words(record, waits),
            "waiting, job 4711: BeginTime; start 1 on n[1-2] was killed, as when a node is lost");
  const std::vector<JobState> runs = {{.id = "4711", .phase = JobState::Phase::running, .nodes = "n[1-2]"}};
  EXPECT_EQ(state_in_words(record, runs), "running, job 4711 on n[1-2]");
  replace_file(folder / "journal", start + "2026-11-18T12:10:00+0000 end 0 4711 75 stopped early, step 5 saved\n");
  EXPECT_EQ(state_in_words(record, waits), "waiting, job 4711: BeginTime");
}

TEST(Describe, AJobThatNeverBeganIsNotSaidToBeBlind) {
  const megalith::testing::TempDir folder;
  const LaunchRecord record{.name = "gpt", .kind = "slurm", .ids = {"7"}, .folder = folder.path()};
  const auto state = [&](const char* word) {
    return state_in_words(record, {{.id = "7", .phase = JobState::Phase::ended, .word = word}});
  };
  EXPECT_EQ(
      state("CANCELLED by 0"),
      "ended before it began: the cluster says CANCELLED by 0, as when a launch that it waits for (--after) fails");
  EXPECT_THAT(state("FAILED"), HasSubstr("ended before its first line: the cluster says FAILED; can the nodes see"));
}

TEST(Describe, ARunThatStandsStillIsNoticed) {
  const megalith::testing::TempDir folder;
  const std::string steps = folder.path() / "dllogger/rank-0/dllogger.json";
  make_directory(folder.path() / "dllogger/rank-0");
  LaunchRecord record{.name = "gpt",
                      .kind = "slurm",
                      .command = {"train"},
                      .ids = {"7"},
                      .run_directory = folder.path(),
                      .folder = folder.path()};
  const auto status = [&](double age, JobState::Phase phase) {
    replace_file(
        steps,
        fmt::format("DLLL {{\"timestamp\": \"{:.3f}\", \"step\": 8, \"data\": {{\"reduced_train_loss\": 2.5}}}}\n",
                    wall_seconds() - age));
    return describe_status(record, {{.id = "7", .phase = phase, .word = "FAILED"}}, "");
  };
  EXPECT_THAT(status(90.0, JobState::Phase::running), HasSubstr("step      9, loss 2.5, 1 min 30 s ago\n"));
  EXPECT_THAT(status(1.0, JobState::Phase::running), HasSubstr("step      9, loss 2.5\n"));
  EXPECT_THAT(status(90.0, JobState::Phase::ended), HasSubstr("step      9, loss 2.5\n"));
}

}  // namespace
}  // namespace megalith::launch
