#include <gtest/gtest.h>

#include "checkpoint/example_ranks.h"
#include "checkpoint/nodes/part_server.h"
#include "comm/local/local_world.h"
#include "expect_error.h"
#include "temp_dir.h"
#include "train/run/checkpoint_search.h"

namespace megalith::train {
namespace {

using checkpoint::Lineage;
using checkpoint::Loaded;
using config::GenerationStart;
using ::megalith::testing::TempDir;
using test::ExampleRank;

constexpr int64_t kRanks = 2;

class SearchUnderARoster : public ::testing::Test {
 protected:
  static checkpoint::RunState state_of(const ExampleRank& example, int64_t generation) {
    checkpoint::RunState state = example.state();
    state.extra[checkpoint::kGenerationKey] = std::to_string(generation);
    return state;
  }

  void keep_part(const std::filesystem::path& directory, int64_t rank, int64_t step, int64_t generation) const {
    const ExampleRank example({.rank = rank, .ranks = kRanks}, step);
    checkpoint::PartStore(directory).save(state_of(example, generation), example.place(), example.content(),
                                          generation);
  }

  void keep_on_node(int64_t step, int64_t generation) const {
    for (const int64_t rank : {0, 1}) keep_part(tiers_.local, rank, step, generation);
  }

  void keep_persistently(int64_t step, int64_t generation) const {
    checkpoint::Store store(tiers_.persistent);
    std::vector<checkpoint::Manifest> parts;
    for (const int64_t rank : {0, 1}) {
      const ExampleRank example({.rank = rank, .ranks = kRanks}, step);
      parts.push_back(store.write_part(state_of(example, generation), example.place(), example.content(), generation));
    }
    store.commit(merge(parts, "parts"));
  }

  CheckpointSearch search(std::vector<GenerationStart> generations,
                          checkpoint::RemoteHolders* holders = nullptr) const {
    return CheckpointSearch({.tiers = tiers_,
                             .run_id = "run-1",
                             .world = *world_,
                             .lineage = Lineage(std::move(generations)),
                             .holders = holders});
  }

  // The generation whose save is found; -1: another step, or none.
  static int64_t generation_found(CheckpointSearch search, int64_t step) {
    std::optional<Loaded> loaded = search.next();
    if (!loaded || !test::holds_example(*loaded, step, kRanks)) return -1;
    return checkpoint::generation_of(loaded->manifest().state);
  }

  void expect_not_loaded(CheckpointSearch search, int64_t step, const std::vector<std::string>& words) const {
    const std::string message = error_of(ErrorKind::io, [&] { search.next(); });
    if (step >= 0) expect_parts(message, {fmt::format("cannot go on from step {}: ", step)});
    expect_parts(message, words);
  }

  std::unique_ptr<comm::World> world_ = comm::make_lone_world(Device::cpu);
  TempDir directory_;
  Tiers tiers_{.persistent = directory_ / "persistent", .local = directory_ / "node", .memory = {}};
};

TEST_F(SearchUnderARoster, LoadsTheStepThatIsNamedAndNoNewerOne) {
  keep_on_node(20, 1);
  keep_on_node(30, 1);
  keep_persistently(40, 1);
  EXPECT_EQ(generation_found(search({{2, 20}}), 20), 1);
  CheckpointSearch found = search({{2, 20}});
  found.next().reset();
  EXPECT_FALSE(found.next().has_value()) << "no older one either";
}

TEST_F(SearchUnderARoster, TakesThePersistentCheckpointWhereTheNodesLackAPart) {
  keep_persistently(20, 1);
  keep_part(tiers_.local, 0, 20, 1);
  EXPECT_EQ(generation_found(search({{2, 20}}), 20), 1);
}

TEST_F(SearchUnderARoster, NeverLoadsWhatAnOlderGenerationSavedBeyondAStep) {
  keep_on_node(30, 1);
  keep_persistently(30, 1);
  expect_not_loaded(search({{1, -1}, {2, 20}, {3, 30}}), 30, {"generation 3", "neither the nodes nor"});
  keep_on_node(30, 2);
  EXPECT_EQ(generation_found(search({{1, -1}, {2, 20}, {3, 30}}), 30), 2);
}

TEST_F(SearchUnderARoster, SaysWhyTheStepCannotBeLoaded) {
  keep_part(tiers_.local, 0, 20, 1);
  expect_not_loaded(search({{2, 20}}), 20, {"1 of 2 parts are there"});
  keep_persistently(30, 1);
  std::filesystem::remove(tiers_.persistent / "step-00000030/shard-g1-r00001.safetensors");
  expect_not_loaded(search({{2, 30}}), 30, {"shard-g1-r00001.safetensors is missing"});
}

TEST_F(SearchUnderARoster, BeginsAnewWhereTheRosterSaysSo) {
  keep_on_node(20, 1);
  EXPECT_FALSE(search({{1, -1}, {2, -1}}).next().has_value());
}

// A save that was committed while the supervisor looked would be lost.
TEST_F(SearchUnderARoster, DoesNotBeginAnewBesideAPersistentCheckpoint) {
  keep_persistently(20, 1);
  expect_not_loaded(search({{1, -1}, {2, -1}}), GenerationStart::kAnew, {"cannot begin anew", "step 20"});
  EXPECT_FALSE(search({{1, -1}, {2, -1}, {3, -1}}).next().has_value()) << "given up by generation 2 already";
}

TEST_F(SearchUnderARoster, AGenerationThatIsOutOfDateLoadsNothing) {
  keep_on_node(20, 1);
  keep_on_node(30, 3);
  CheckpointSearch found = search({{2, 20}});
  expect_error(ErrorKind::io, {"generation 3 saved step 30", "generation 2"}, [&] { found.next(); });
}

class NodesWithoutRanks : public SearchUnderARoster {
 protected:
  static constexpr double kDeadline = 20.0;

  void offer() { server_.offer(); }

  checkpoint::NodeDirectories spare_{.memory = {}, .local = directory_ / "spare", .copies = {}};
  checkpoint::PartServer server_{spare_, "run-1", "127.0.0.1"};
  checkpoint::RemoteHolders holders_{{{"spare", server_.place()}}, kDeadline};
};

TEST_F(NodesWithoutRanks, HaveWhatTheOthersLack) {
  keep_part(tiers_.local, 0, 20, 1);
  keep_part(spare_.local, 1, 20, 1);
  offer();
  EXPECT_EQ(generation_found(search({{2, 20}}, &holders_), 20), 1);
  EXPECT_EQ(generation_found(search({}, &holders_), 20), 1) << "without a roster too";
}

TEST_F(NodesWithoutRanks, MayHaveEverything) {
  for (const int64_t rank : {0, 1}) keep_part(spare_.local, rank, 20, 1);
  offer();
  EXPECT_EQ(generation_found(search({{2, 20}}, &holders_), 20), 1);
}

TEST_F(NodesWithoutRanks, ThatAreGoneAreNamed) {
  keep_part(tiers_.local, 0, 20, 1);
  keep_part(spare_.local, 1, 20, 1);
  CheckpointSearch found = search({{2, 20}}, &holders_);
  ASSERT_FALSE(found.passed_over().empty());
  EXPECT_EQ(found.passed_over()[0].name, "what node spare holds");
  expect_not_loaded(std::move(found), 20, {"1 of 2 parts are there"});
}

TEST_F(NodesWithoutRanks, DamagedBytesAreReadElsewhere) {
  for (const int64_t rank : {0, 1}) keep_part(spare_.local, rank, 20, 1);
  keep_persistently(20, 1);
  offer();
  const std::filesystem::path shard = checkpoint::PartStore(spare_.local).list()[0].shard;
  std::filesystem::resize_file(shard, std::filesystem::file_size(shard) - 1);
  std::filesystem::resize_file(shard, std::filesystem::file_size(shard) + 1);
  CheckpointSearch found = search({{2, 20}}, &holders_);
  std::optional<Loaded> loaded = found.next();
  ASSERT_TRUE(loaded.has_value());
  EXPECT_TRUE(test::holds_example(*loaded, 20, kRanks));
  ASSERT_EQ(loaded->bad_places().size(), 1U);
  EXPECT_NE(loaded->bad_places()[0].reason.find("node spare"), std::string::npos);
}

// Two ranks on two nodes, of which one knows nothing, and a spare that holds everything.
TEST_F(NodesWithoutRanks, AreReadByEveryRank) {
  for (const int64_t rank : {0, 1}) keep_part(spare_.local, rank, 20, 1);
  offer();
  comm::run_local_ranks(kRanks, [&](comm::World& world) {
    checkpoint::Peers peers(world, kDeadline);
    checkpoint::RemoteHolders holders({{"spare", server_.place()}}, kDeadline);
    const std::filesystem::path own = directory_ / fmt::format("own{}", world.rank());
    CheckpointSearch found({.tiers = {.persistent = tiers_.persistent, .local = own, .memory = {}},
                            .run_id = "run-1",
                            .world = world,
                            .ranks_per_node = 1,
                            .peers = &peers,
                            .deadline = kDeadline,
                            .lineage = Lineage({{2, 20}}),
                            .holders = &holders});
    std::optional<Loaded> loaded = found.next();
    ASSERT_TRUE(loaded.has_value());
    EXPECT_TRUE(test::holds_example(*loaded, 20, kRanks));
  });
}

}  // namespace
}  // namespace megalith::train
