#include <gtest/gtest.h>

#include "checkpoint/file_names.h"
#include "checkpoint/fixtures.h"
#include "checkpoint/store.h"
#include "temp_dir.h"

namespace megalith::checkpoint {
namespace {

namespace fs = std::filesystem;
using test::ExampleRun;
using testing::TempDir;

std::vector<int64_t> steps_of(const Store& store) {
  std::vector<int64_t> steps;
  for (const StepInfo& step : store.list()) steps.push_back(step.step);
  return steps;
}

void damage(const fs::path& step) {
  const fs::path shard = step / "shard-g1-r00000.safetensors";
  std::string bytes = test::bytes_of(shard);
  bytes.back() = static_cast<char>(bytes.back() ^ 1);
  test::overwrite(shard, bytes);
}

TEST(Retention, KeepsTheNewest) {
  const TempDir directory;
  Store store(directory.path(), 2);
  for (const int64_t step : {10, 20}) EXPECT_TRUE(store.save(ExampleRun(step).snapshot()).removed.empty());
  const SaveResult result = store.save(ExampleRun(30).snapshot());
  EXPECT_EQ(result.removed, std::vector<std::string>{"step-00000010"});
  EXPECT_EQ(steps_of(store), (std::vector<int64_t>{30, 20}));
  store.save(ExampleRun(40).snapshot());
  EXPECT_EQ(steps_of(store), (std::vector<int64_t>{40, 30}));
  for (const auto& entry : fs::directory_iterator(directory.path())) {
    EXPECT_FALSE(is_trash_name(entry.path().filename().string()));
  }
}

TEST(Retention, KeepsAllOnRequest) {
  const TempDir directory;
  Store store(directory.path(), Store::kKeepAll);
  for (int64_t step = 1; step <= 5; ++step) store.save(ExampleRun(step).snapshot());
  EXPECT_EQ(steps_of(store).size(), 5u);
  EXPECT_THROW(Store(directory.path(), 0), Error);
}

TEST(Retention, DamagedOnesDoNotCount) {
  const TempDir directory;
  {
    Store store(directory.path());
    for (const int64_t step : {10, 20, 30}) store.save(ExampleRun(step).snapshot());
  }
  damage(directory / "step-00000030");
  fs::create_directory(directory / "step-00000035");
  Store store(directory.path(), 2);
  store.save(ExampleRun(40).snapshot());
  // 40 and 20 are good; the damaged one between them stays to be looked at.
  EXPECT_EQ(steps_of(store), (std::vector<int64_t>{40, 30, 20}));
  store.save(ExampleRun(50).snapshot());
  EXPECT_EQ(steps_of(store), (std::vector<int64_t>{50, 40}));
}

TEST(Retention, UnfinishedSavesOfOlderStepsGo) {
  const TempDir directory;
  Store store(directory.path(), Store::kKeepAll);
  store.save(ExampleRun(10).snapshot());
  for (const char* name : {"step-00000020", "step-00000030", "step-00000050"}) {
    fs::create_directory(directory / name);
    test::overwrite(directory / name / "shard-g1-r00000.safetensors", "half");
  }
  test::overwrite(directory / "step-00000020/notes.txt", "do not delete");
  EXPECT_EQ(store.save(ExampleRun(40).snapshot()).warnings.size(), 1u);
  // What is not ours and what is newer stays.
  EXPECT_EQ(steps_of(store), (std::vector<int64_t>{50, 40, 20, 10}));
}

TEST(Retention, HigherStepsStayWhenARunWentBack) {
  const TempDir directory;
  Store store(directory.path(), 1);
  store.save(ExampleRun(100).snapshot());
  store.save(ExampleRun(50).snapshot());
  EXPECT_EQ(steps_of(store), (std::vector<int64_t>{100, 50}));
  store.save(ExampleRun(60).snapshot());
  EXPECT_EQ(steps_of(store), (std::vector<int64_t>{100, 60}));
}

TEST(Retention, TouchesOnlyWhatIsOurs) {
  const TempDir directory;
  Store store(directory.path(), 1);
  store.save(ExampleRun(10).snapshot());
  test::overwrite(directory / "step-00000010/notes.txt", "do not delete");
  fs::create_directory(directory / "trash-step-00000001-g1");
  test::overwrite(directory / "trash-step-00000001-g1/manifest.json", "{}");
  fs::create_directory(directory / "trash-step-00000002-g1");
  test::overwrite(directory / "trash-step-00000002-g1/thesis.doc", "do not delete");
  const SaveResult result = store.save(ExampleRun(20).snapshot());
  ASSERT_EQ(result.warnings.size(), 1u);
  EXPECT_TRUE(fs::exists(directory / "step-00000010/notes.txt"));
  EXPECT_FALSE(fs::exists(directory / "trash-step-00000001-g1"));
  EXPECT_TRUE(fs::exists(directory / "trash-step-00000002-g1/thesis.doc"));
}

Snapshot of_run(const ExampleRun& example, const std::string& run) {
  Snapshot snapshot = example.snapshot();
  snapshot.state.run_id = run;
  return snapshot;
}

TEST(Retention, NeverRemovesOrOverwritesWhatAnotherRunSaved) {
  const TempDir directory;
  const ExampleRun examples[] = {ExampleRun(10), ExampleRun(20), ExampleRun(30), ExampleRun(40)};
  Store others(directory.path(), 1);
  others.save(of_run(examples[0], "run-2"));
  Store store(directory.path(), 1);
  for (int i = 1; i < 4; ++i) store.save(examples[i].snapshot());
  EXPECT_EQ(steps_of(store), (std::vector<int64_t>{40, 10}));
  const std::string manifest = test::bytes_of(directory / "step-00000010/manifest.json");
  try {
    store.save(examples[0].snapshot());
    ADD_FAILURE() << "another run's checkpoint was overwritten";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("holds a checkpoint of run run-2, this is run run-1"), std::string::npos)
        << error.what();
  }
  EXPECT_EQ(test::bytes_of(directory / "step-00000010/manifest.json"), manifest);
  store.open(10).verify();
}

TEST(Retention, KeepsTheBestAndTheNewest) {
  for (const bool largest : {false, true}) {
    const TempDir directory;
    Store store(directory.path(), 2, {.by = "val_loss", .largest = largest});
    // Nothing is known of the one at 30.
    for (const auto& [step, loss] :
         {std::pair<int64_t, const char*>(10, "3.5"), {20, "-2.5"}, {30, ""}, {40, "4.5"}, {50, "10"}, {60, "5e0"}}) {
      const ExampleRun example(step);
      Snapshot snapshot = example.snapshot();
      if (*loss != 0) snapshot.state.extra["val_loss"] = loss;
      store.save(snapshot);
      EXPECT_EQ(steps_of(store).front(), step) << "the newest is always there";
    }
    EXPECT_EQ(steps_of(store), largest ? (std::vector<int64_t>{60, 50}) : (std::vector<int64_t>{60, 20, 10}));
  }
}

TEST(Retention, AStepThatLostItsManifestIsNotTakenForAnUnfinishedSave) {
  const TempDir directory;
  Store store(directory.path(), Store::kKeepAll);
  for (const int64_t step : {10, 20}) store.save(ExampleRun(step).snapshot());
  fs::remove(directory / "step-00000010/manifest.json");
  fs::create_directory(directory / "step-00000025");
  std::vector<StepInfo> steps = store.list();
  EXPECT_EQ(steps[0].status, StepStatus::incomplete);
  EXPECT_EQ(steps[2].status, StepStatus::damaged);
  EXPECT_EQ(steps[2].reason,
            "its manifest.json is gone, and latest_checkpointed_iteration.txt says that step 20 was saved");
  store.save(ExampleRun(30).snapshot());
  EXPECT_EQ(steps_of(store), (std::vector<int64_t>{30, 20, 10}));
}

}  // namespace
}  // namespace megalith::checkpoint
