#include "checkpoint/nodes/part_store.h"

#include <gtest/gtest.h>

#include "checkpoint/example_ranks.h"
#include "checkpoint/file_names.h"
#include "checkpoint/fixtures.h"
#include "core/process/failpoint.h"
#include "expect_error.h"
#include "temp_dir.h"

namespace megalith::checkpoint {
namespace {

namespace fs = std::filesystem;
using test::ExampleRank;
using testing::TempDir;

constexpr int64_t kRanks = 2;

void save(const PartStore& store, int64_t rank, int64_t step, int64_t generation = 1) {
  const ExampleRank example({.rank = rank, .ranks = kRanks}, step);
  store.save(example.state(), example.place(), example.content(), generation);
}

std::vector<int64_t> steps_of(const PartStore& store, int64_t rank) {
  std::vector<int64_t> steps;
  for (const HeldPart& part : store.list()) {
    if (part.manifest.part->rank == rank) steps.push_back(part.manifest.state.step);
  }
  return steps;
}

TEST(PartStore, PartsOfAllRanksMakeACheckpoint) {
  const TempDir directory;
  const PartStore store(directory / "node/run");
  EXPECT_TRUE(store.list().empty());
  for (const int64_t step : {10, 20}) {
    for (int64_t rank = 0; rank < kRanks; ++rank) save(store, rank, step);
  }
  EXPECT_EQ(steps_of(store, 0), (std::vector<int64_t>{20, 10}));
  std::vector<Manifest> parts;
  std::map<std::string, fs::path> places;
  for (const HeldPart& part : store.list()) {
    if (part.manifest.state.step != 20) continue;
    parts.push_back(part.manifest);
    places[part.manifest.shards.front().file] = part.shard;
  }
  Loaded loaded("node", merge(parts, "node"),
                [&](const ShardInfo& shard) { return std::vector<ShardPlace>{places.at(shard.file)}; });
  EXPECT_TRUE(test::holds_example(loaded, 20, kRanks));
}

TEST(PartStore, KeepsTheNewestOfARankAndTheProtectedStep) {
  const TempDir directory;
  const PartStore store(directory.path());
  for (const int64_t step : {10, 20, 30, 40}) {
    for (int64_t rank = 0; rank < kRanks; ++rank) save(store, rank, step);
  }
  store.retain(0, {.keep = 2, .protected_step = 10});
  EXPECT_EQ(steps_of(store, 0), (std::vector<int64_t>{40, 30, 10}));
  EXPECT_EQ(steps_of(store, 1), (std::vector<int64_t>{40, 30, 20, 10}));
  store.retain(0, {.keep = 1});
  store.retain(1, {.keep = 1});
  EXPECT_EQ(steps_of(store, 0), std::vector<int64_t>{40});
  EXPECT_EQ(directory.files(), 1) << "directories of steps that nobody holds are left";
}

TEST(PartStore, TornAndForeignFilesArePassedOver) {
  const TempDir directory;
  const PartStore store(directory.path());
  for (const int64_t step : {10, 20, 30, 40}) save(store, 0, step);
  const auto file = [&](int64_t step, const char* name) { return directory / step_name(step) / name; };
  const std::string manifest = test::bytes_of(file(40, "part-g1-r00000.json"));
  test::overwrite(file(40, "part-g1-r00000.json"), manifest.substr(0, manifest.size() / 2));
  fs::resize_file(file(30, "shard-g1-r00000.safetensors"), 100);
  fs::remove(file(20, "shard-g1-r00000.safetensors"));
  test::overwrite(file(20, "notes.txt"), "do not delete");
  EXPECT_EQ(steps_of(store, 0), std::vector<int64_t>{10});
}

TEST(PartStore, WhatACrashLeavesIsRemovedWithTheNextSave) {
  const TempDir directory;
  const PartStore store(directory.path());
  save(store, 0, 10);
  const fs::path unfinished = directory / "step-00000020";
  fs::create_directory(unfinished);
  // Of a shard without a part, a part that was being written, and what is not this rank's to remove.
  test::overwrite(unfinished / "shard-g1-r00000.safetensors", "half");
  test::overwrite(unfinished / "part-g1-r00000.json.part", "{");
  test::overwrite(unfinished / "shard-g1-r00001.safetensors", "half");
  test::overwrite(unfinished / "shard-g3-r00000.safetensors.bad", "to be looked at");
  save(store, 0, 30, 2);
  store.retain(0, {.keep = 2});
  EXPECT_EQ(steps_of(store, 0), (std::vector<int64_t>{30, 10}));
  std::vector<std::string> left;
  for (const auto& entry : fs::directory_iterator(unfinished)) left.push_back(entry.path().filename().string());
  std::sort(left.begin(), left.end());
  EXPECT_EQ(left, (std::vector<std::string>{"shard-g1-r00001.safetensors", "shard-g3-r00000.safetensors.bad"}));
}

TEST(PartStore, AFailedSaveLeavesNothing) {
  const TempDir directory;
  const PartStore store(directory.path());
  save(store, 0, 10);
  for (const char* failpoint : {"checkpoint.before_shard=io", "file.write=io@1", "file.write=io@2", "file.rename=io"}) {
    arm_failpoint(failpoint);
    error_of(ErrorKind::io, [&] { save(store, 0, 20); });
    disarm_failpoints();
    EXPECT_EQ(steps_of(store, 0), std::vector<int64_t>{10}) << failpoint;
    EXPECT_FALSE(fs::exists(directory / "step-00000020")) << failpoint;
  }
}

TEST(MemoryParts, CountWhileTheirManifestIsThere) {
  const TempDir directory;
  const MemoryParts memory(directory.path());
  ThreadPool pool(1);
  for (int64_t rank = 0; rank < kRanks; ++rank) {
    const ExampleRank example({.rank = rank, .ranks = kRanks}, 20);
    File::create_new(memory.shard_of(rank)).write(example.image().memory());
    EXPECT_EQ(std::ssize(memory.list()), rank);
    memory.commit(example.state(), example.place(),
                  {.pieces = example.image().pieces(), .digests = digests_of(example.image().memory(), pool)});
  }
  EXPECT_EQ(memory.list().size(), 2u);
  memory.revoke(0);
  ASSERT_EQ(memory.list().size(), 1u);
  EXPECT_EQ(memory.list()[0].manifest.part->rank, 1);
  EXPECT_TRUE(fs::exists(memory.shard_of(0)));
  memory.remove(0);
  memory.remove(1);
  EXPECT_EQ(directory.files(), 0);
}

TEST(MemoryParts, HoldTwoImagesOfARankByTurns) {
  const TempDir directory;
  const MemoryParts memory(directory.path());
  ThreadPool pool(1);
  EXPECT_EQ(memory.steps_of(0, "run-1"), (std::vector<int64_t>{-1, -1}));
  for (const int64_t image : {0, 1}) {
    const ExampleRank example({.rank = 0, .ranks = kRanks}, 20 + image);
    File::create_new(memory.shard_of(0, image)).write(example.image().memory());
    memory.commit(
        example.state(), example.place(),
        {.pieces = example.image().pieces(), .digests = digests_of(example.image().memory(), pool), .image = image});
  }
  EXPECT_EQ(memory.steps_of(0, "run-1"), (std::vector<int64_t>{20, 21}));
  EXPECT_EQ(memory.steps_of(1, "run-1"), (std::vector<int64_t>{-1, -1}));
  EXPECT_EQ(memory.steps_of(0, "run-2"), (std::vector<int64_t>{-1, -1}));
  memory.revoke(0, 1);
  EXPECT_EQ(memory.steps_of(0, "run-1"), (std::vector<int64_t>{20, -1})) << "one is there while the other is made";
  memory.remove(0);
  EXPECT_EQ(directory.files(), 0);
}

TEST(PartStore, PartsOfAnotherRunNeitherCountNorGo) {
  const TempDir directory;
  const PartStore store(directory.path());
  const test::ExampleRank example({.rank = 0, .ranks = kRanks}, 50);
  RunState foreign = example.state();
  foreign.run_id = "run-2";
  store.save(foreign, example.place(), example.content(), 1);
  for (const int64_t step : {10, 20, 30}) save(store, 0, step);
  store.retain(0, {.keep = 2, .run_id = example.state().run_id});
  EXPECT_EQ(steps_of(store, 0), (std::vector<int64_t>{50, 30, 20}));
}

}  // namespace
}  // namespace megalith::checkpoint
