#include <gtest/gtest.h>

#include "checkpoint/file_names.h"
#include "checkpoint/fixtures.h"
#include "checkpoint/savers.h"
#include "checkpoint/store.h"
#include "expect_error.h"
#include "temp_dir.h"

namespace megalith::checkpoint {
namespace {

namespace fs = std::filesystem;
using test::ExampleRun;
using testing::TempDir;

// Lets so many calls pass.
Fence falls_after(int calls) {
  return [left = calls]() mutable {
    if (left-- <= 0) fail(ErrorKind::io, "generation 2 has taken over");
  };
}

std::vector<int64_t> committed(const fs::path& directory) {
  std::vector<int64_t> steps;
  for (const StepInfo& step : Store(directory).list()) {
    if (step.status == StepStatus::committed) steps.push_back(step.step);
  }
  return steps;
}

TEST(Fence, WhoWasOvertakenCommitsNothing) {
  const TempDir directory;
  Store(directory.path()).save(ExampleRun(10).snapshot());
  Store store(directory.path());
  store.set_fence(falls_after(0));
  expect_error(ErrorKind::io, {"generation 2 has taken over"}, [&] { store.save(ExampleRun(20).snapshot()); });
  EXPECT_EQ(committed(directory.path()), std::vector<int64_t>{10});
  EXPECT_FALSE(fs::exists(directory / "step-00000020")) << "what it wrote is taken back";
}

// A process that stood still between the fence and the rename commits, and must not then tidy up among files of those
// who went on without it.
TEST(Fence, WhoSlipsThroughRemovesNothing) {
  const TempDir directory;
  Store(directory.path()).save(ExampleRun(10).snapshot());
  fs::create_directory(directory / "step-00000015");
  test::overwrite(directory / "step-00000015/shard-g2-r00000.safetensors", "is being written by others");
  fs::create_directory(directory / "step-00000020");
  test::overwrite(directory / "step-00000020/shard-g2-r00000.safetensors", "so is this");
  Store store(directory.path(), 1);
  store.set_fence(falls_after(1));
  const SaveResult result = store.save(ExampleRun(20).snapshot());
  EXPECT_EQ(result.removed, std::vector<std::string>{});
  ASSERT_FALSE(result.warnings.empty());
  EXPECT_NE(result.warnings.front().find("will not count: generation 2"), std::string::npos) << result.warnings.front();
  EXPECT_EQ(committed(directory.path()), (std::vector<int64_t>{20, 10}));
  for (const char* file : {"step-00000015/shard-g2-r00000.safetensors", "step-00000020/shard-g2-r00000.safetensors"})
    EXPECT_TRUE(fs::exists(directory / file)) << file;
  EXPECT_EQ(Store(directory.path()).last_committed(), 10);
}

TEST(Fence, ItsRefusalIsTheFailureOfTheSaveOnAllRanks) {
  const TempDir directory;
  comm::LocalBoard board;
  test::Savers savers(2, board, directory.path(), [](Saver::Options& options) {
    if (options.place.rank == 0) options.fence = falls_after(0);
  });
  const std::vector<Saver::Outcome> outcomes = savers.save(10);
  EXPECT_EQ(outcomes[0].failure, "generation 2 has taken over");
  EXPECT_EQ(outcomes[1].failure, "rank 0: generation 2 has taken over");
  EXPECT_TRUE(Store(directory.path()).list().empty());
}

class GivenUp : public ::testing::Test {
 protected:
  void save(int64_t step, const std::string& generation, const std::string& run = "run-1") const {
    const ExampleRun example(step);
    Snapshot snapshot = example.snapshot();
    snapshot.state.run_id = run;
    snapshot.state.extra[kGenerationKey] = generation;
    Store(directory_.path()).save(snapshot);
  }

  TempDir directory_;
};

TEST_F(GivenUp, StepsAreTrashAndNoLongerCountAsSaved) {
  save(10, "1");
  save(20, "1");
  save(30, "1");
  save(25, "2");
  const std::vector<std::string> lines = Store(directory_.path()).set_given_up_aside("run-1", Lineage({{2, 20}}));
  ASSERT_EQ(lines.size(), 1U);
  EXPECT_EQ(lines[0],
            fmt::format("{} is now {}: generation 1 saved it, and generation 2 went on from step 20",
                        (directory_ / "step-00000030").string(), (directory_ / "trash-step-00000030-g1").string()));
  EXPECT_EQ(committed(directory_.path()), (std::vector<int64_t>{25, 20, 10}));
  EXPECT_TRUE(fs::exists(directory_ / "trash-step-00000030-g1/manifest.json")) << "until the next retention";
  EXPECT_EQ(Store(directory_.path()).last_committed(), 25) << "step 30 would count as lost";
  EXPECT_TRUE(Store(directory_.path()).set_given_up_aside("run-1", Lineage({{2, 20}})).empty());
}

TEST_F(GivenUp, AllOfThemLeaveARunThatBeginsAnew) {
  save(10, "1");
  Store(directory_.path()).set_given_up_aside("run-1", Lineage({{1, -1}, {2, -1}}));
  EXPECT_TRUE(committed(directory_.path()).empty());
  EXPECT_EQ(Store(directory_.path()).last_committed(), std::nullopt);
}

TEST_F(GivenUp, OthersStay) {
  save(30, "1", "run-2");
  save(40, "3");
  EXPECT_TRUE(Store(directory_.path()).set_given_up_aside("run-1", Lineage({{2, 20}})).empty())
      << "another run's, and a later generation's";
  save(50, "1");
  test::overwrite(directory_ / "step-00000050/notes.txt", "do not delete");
  const std::vector<std::string> lines = Store(directory_.path()).set_given_up_aside("run-1", Lineage({{2, 20}}));
  ASSERT_EQ(lines.size(), 1U);
  EXPECT_NE(lines[0].find("holds files that are not ours"), std::string::npos) << lines[0];
  EXPECT_TRUE(fs::exists(directory_ / "step-00000050/notes.txt"));
}

}  // namespace
}  // namespace megalith::checkpoint
