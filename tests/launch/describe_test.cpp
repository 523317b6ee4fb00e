#include "launch/describe.h"

#include <gtest/gtest.h>

#include "core/file.h"
#include "temp_dir.h"

namespace megalith::launch {
namespace {

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

}  // namespace
}  // namespace megalith::launch
