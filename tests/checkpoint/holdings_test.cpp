#include "checkpoint/holdings.h"

#include <gtest/gtest.h>

#include "checkpoint/example_ranks.h"
#include "checkpoint/file_names.h"
#include "checkpoint/fixtures.h"
#include "temp_dir.h"

namespace megalith::checkpoint {
namespace {

namespace fs = std::filesystem;
using test::ExampleRank;
using testing::TempDir;
using enum HeldSave::Tier;

constexpr int64_t kRanks = 2;

RunState state_of(int64_t step, int64_t generation, const std::string& run = "run-1") {
  RunState state = ExampleRank({.rank = 0, .ranks = kRanks}, step).state();
  state.run_id = run;
  state.extra[kGenerationKey] = std::to_string(generation);
  return state;
}

void keep(const fs::path& directory, int64_t rank, const RunState& state) {
  const ExampleRank example({.rank = rank, .ranks = kRanks}, state.step);
  PartStore(directory).save(state, example.place(), example.content(), generation_of(state));
}

void keep_in_memory(const fs::path& directory, int64_t rank, const RunState& state) {
  const ExampleRank example({.rank = rank, .ranks = kRanks}, state.step);
  const MemoryParts memory(directory);
  make_directory(directory);
  ThreadPool pool(1);
  File::create_new(memory.shard_of(rank)).write(example.image().memory());
  memory.commit(state, example.place(),
                {.pieces = example.image().pieces(), .digests = digests_of(example.image().memory(), pool)});
}

class Holdings : public ::testing::Test {
 protected:
  TempDir directory_;
  NodeDirectories node_{
      .memory = directory_ / "memory", .local = directory_ / "local", .copies = directory_ / "memory/copies"};
};

TEST_F(Holdings, AreWhatANodeHasOfTheRunByPlace) {
  keep_in_memory(node_.memory, 0, state_of(30, 2));
  for (const int64_t rank : {0, 1}) keep(node_.local, rank, state_of(20, 2));
  keep(node_.copies, 1, state_of(30, 2));
  keep(node_.local, 1, state_of(20, 1));
  keep(node_.local, 0, state_of(90, 2, "run-2"));
  keep(node_.local, 0, state_of(25, 2));
  test::overwrite(node_.local / "step-00000025/part-g2-r00000.json", "{}");
  fs::create_directories(node_.local / "step-00000077/part-g1-r00000.json");
  EXPECT_EQ(saves_on(node_, "run-1"), (std::vector<HeldSave>{{30, 2, kRanks, memory, {0}},
                                                             {30, 2, kRanks, copies, {1}},
                                                             {20, 2, kRanks, local, {0, 1}},
                                                             {20, 1, kRanks, local, {1}}}));
  EXPECT_EQ(parts_on(node_).size(), 6U);
  EXPECT_TRUE(saves_on({}, "run-1").empty());
  EXPECT_TRUE(saves_on({.memory = directory_ / "no", .local = directory_ / "such", .copies = {}}, "run-1").empty());
}

// A manifest that says something else than its file's name, in a directory that anybody may have written to.
TEST_F(Holdings, AManifestUnderAnotherNameIsNone) {
  keep(node_.local, 0, state_of(20, 2));
  const fs::path step = node_.local / "step-00000020";
  fs::rename(step / "part-g2-r00000.json", step / "part-g2-r00001.json");
  fs::copy(step / "shard-g2-r00000.safetensors", step / "shard-g2-r00001.safetensors");
  EXPECT_TRUE(parts_on(node_).empty());
}

TEST_F(Holdings, WhatALineageGivesUpGoesAndIsNamed) {
  keep_in_memory(node_.memory, 0, state_of(30, 1));
  keep(node_.local, 0, state_of(20, 1));
  keep(node_.local, 0, state_of(25, 1));
  keep(node_.copies, 1, state_of(30, 1));
  keep(node_.copies, 1, state_of(30, 1, "run-2"));
  const std::vector<std::string> lines = remove_given_up(node_, "run-1", Lineage({{2, 20}}));
  ASSERT_EQ(lines.size(), 3U);
  EXPECT_EQ(lines[1], "part 0 of step 25 in " + (node_.local / "step-00000025").string() +
                          ": generation 1 saved it, and generation 2 went on from step 20");
  EXPECT_EQ(saves_on(node_, "run-1"), (std::vector<HeldSave>{{20, 1, kRanks, local, {0}}}));
  EXPECT_EQ(saves_on(node_, "run-2").size(), 1U) << "another run's";
  EXPECT_TRUE(fs::exists(MemoryParts(node_.memory).shard_of(0))) << "memory for the next image";
  EXPECT_TRUE(remove_given_up(node_, "run-1", Lineage({{2, 20}})).empty());
  remove_parts(node_, "run-1");
  EXPECT_TRUE(saves_on(node_, "run-1").empty());
  EXPECT_EQ(saves_on(node_, "run-2").size(), 1U);
}

TEST_F(Holdings, PersistentCheckpointsAreWhole) {
  Store store(directory_ / "checkpoints");
  std::vector<Manifest> parts;
  for (const int64_t rank : {0, 1}) {
    const ExampleRank example({.rank = rank, .ranks = kRanks}, 20);
    parts.push_back(store.write_part(state_of(20, 3), example.place(), example.content(), 3));
  }
  EXPECT_TRUE(saves_in(store.directory(), "run-1").empty());
  store.commit(merge(parts, "parts"));
  EXPECT_EQ(saves_in(store.directory(), "run-1"), (std::vector<HeldSave>{{20, 3, kRanks, persistent, {0, 1}}}));
  EXPECT_TRUE(saves_in(store.directory(), "run-2").empty());
  EXPECT_TRUE(saves_in(directory_ / "nowhere", "run-1").empty());
}

TEST(SaveId, IsReadBackAndNothingElseIs) {
  const ExampleRank example({.rank = 1, .ranks = kRanks}, 20);
  const Manifest part = manifest_of_part(state_of(20, 3), example.place(), {.file = "x", .digests = {}}, {});
  const SaveId id = SaveId::of(part);
  EXPECT_EQ(SaveId::from_text(id.to_text()), id);
  EXPECT_EQ(id.step, 20);
  EXPECT_EQ(id.ranks, 2);
  EXPECT_EQ(id.generation, 3);
  for (const char* text :
       {"", "20", "20-2-3", "20-2-3-", "20-2-3-xyz", "-1-2-3-0123456789abcdef", "20-0-3-0123456789abcdef",
        "20-2-3-0123456789abcdef-", "20-2-3-0123456789ABCDEF", "99999999999999999999-2-3-0123456789abcdef"}) {
    EXPECT_EQ(SaveId::from_text(text), std::nullopt) << text;
  }
}

}  // namespace
}  // namespace megalith::checkpoint
