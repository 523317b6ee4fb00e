#include "train/run/checkpoint_search.h"

#include <gtest/gtest.h>

#include "checkpoint/example_ranks.h"
#include "comm/local/local_world.h"
#include "expect_error.h"
#include "temp_dir.h"

namespace megalith::train {
namespace {

using checkpoint::Loaded;
using ::megalith::testing::TempDir;
using test::ExampleRank;

constexpr int64_t kRanks = 2;

class Search : public ::testing::Test {
 protected:
  void keep_on_node(int64_t rank, int64_t step, const std::string& start = "1",
                    const std::string& run = "run-1") const {
    const ExampleRank example({.rank = rank, .ranks = kRanks}, step);
    checkpoint::RunState state = example.state();
    state.run_id = run;
    state.extra["start"] = start;
    checkpoint::PartStore(tiers_.local).save(state, example.place(), example.content(), 1);
  }

  void keep_persistently(int64_t step) const {
    checkpoint::Store store(tiers_.persistent);
    std::vector<checkpoint::Manifest> parts;
    for (int64_t rank = 0; rank < kRanks; ++rank) {
      const ExampleRank example({.rank = rank, .ranks = kRanks}, step);
      parts.push_back(store.write_part(example.state(), example.place(), example.content(), 1));
    }
    store.commit(merge(parts, "parts"));
  }

  CheckpointSearch search() const { return CheckpointSearch({.tiers = tiers_, .run_id = "run-1", .world = *world_}); }

  std::unique_ptr<comm::World> world_ = comm::make_lone_world(Device::cpu);
  TempDir directory_;
  Tiers tiers_{.persistent = directory_ / "persistent", .local = directory_ / "node", .memory = {}};
};

TEST_F(Search, GivesTheNewestStepOfWhichAllPartsAreThere) {
  keep_persistently(10);
  for (int64_t rank = 0; rank < kRanks; ++rank) keep_on_node(rank, 20);
  keep_on_node(0, 30);
  CheckpointSearch found = search();
  for (const int64_t step : {20, 10}) {
    std::optional<Loaded> loaded = found.next();
    ASSERT_TRUE(loaded.has_value());
    EXPECT_TRUE(test::holds_example(*loaded, step, kRanks));
  }
  EXPECT_FALSE(found.next().has_value());
  ASSERT_EQ(found.passed_over().size(), 1u);
  EXPECT_EQ(found.passed_over()[0].name, "step 30 on the nodes");
  EXPECT_EQ(found.passed_over()[0].reason, "1 of 2 parts are there");
  EXPECT_TRUE(found.passed_over()[0].unfinished);
}

TEST_F(Search, NeverJoinsPartsOfTwoStarts) {
  keep_on_node(0, 20, "1");
  keep_on_node(1, 20, "2");
  EXPECT_FALSE(search().next().has_value());
}

TEST_F(Search, LeavesOtherRunsAlone) {
  for (int64_t rank = 0; rank < kRanks; ++rank) keep_on_node(rank, 20, "1", "run-2");
  CheckpointSearch found = search();
  EXPECT_FALSE(found.next().has_value());
  ASSERT_EQ(found.passed_over().size(), 1u);
  EXPECT_NE(found.passed_over()[0].name.find("step 20 of run run-2 in "), std::string::npos);
  EXPECT_EQ(found.passed_over()[0].reason, "it is another run's, this is run run-1");
}

TEST_F(Search, RefusesAPersistentTierOfAnotherRunByName) {
  keep_persistently(20);
  CheckpointSearch found({.tiers = tiers_, .run_id = "run-2", .run_name = "runs/b", .world = *world_});
  const std::string message = error_of(ErrorKind::user, [&] { found.next(); });
  for (const std::string& words : {tiers_.persistent.string() + "/step-00000020 is a checkpoint of run run-1",
                                   std::string("this is run run-2 (runs/b)"), std::string("model.restore_from_path")}) {
    EXPECT_NE(message.find(words), std::string::npos) << message;
  }
}

// A start that cannot know which run it is does not begin anew beside what may be its own.
TEST_F(Search, RefusesToLoseWhatMayBeItsOwn) {
  for (int64_t rank = 0; rank < kRanks; ++rank) keep_on_node(rank, 20, "3", "run-2");
  CheckpointSearch found(
      {.tiers = tiers_, .run_id = "run-1", .lost_identity = "runs/a/.megalith.starts", .world = *world_});
  const std::string message = error_of(ErrorKind::data, [&] { found.next(); });
  EXPECT_NE(message.find("step 20 of run run-2 in "), std::string::npos) << message;
}

TEST_F(Search, TakesAShardThatIsDamagedOnTheNodeFromThePersistentTier) {
  keep_persistently(20);
  checkpoint::PartStore node(tiers_.local);
  for (int64_t rank = 0; rank < kRanks; ++rank) {
    const ExampleRank example({.rank = rank, .ranks = kRanks}, 20);
    node.save(example.state(), example.place(), example.content(), 1);
  }
  const std::filesystem::path shard = node.list()[0].shard;
  const auto size = std::filesystem::file_size(shard);
  std::filesystem::resize_file(shard, size - 1);
  std::filesystem::resize_file(shard, size);
  CheckpointSearch found = search();
  std::optional<Loaded> loaded = found.next();
  ASSERT_TRUE(loaded.has_value());
  EXPECT_TRUE(test::holds_example(*loaded, 20, kRanks));
  ASSERT_EQ(loaded->bad_places().size(), 1u);
  EXPECT_EQ(loaded->bad_places()[0].file, shard);
}

// Two nodes of one rank each. What the second has lost, the first has a copy of.
class SearchOnNodes : public ::testing::Test {
 protected:
  Tiers tiers_of_node(int64_t node) const {
    const std::filesystem::path memory = directory_ / fmt::format("memory{}", node);
    return {.persistent = directory_ / "persistent", .local = {}, .memory = memory};
  }

  void keep(const std::filesystem::path& directory, int64_t rank, int64_t step) const {
    const ExampleRank example({.rank = rank, .ranks = kRanks}, step);
    checkpoint::PartStore(directory).save(example.state(), example.place(), example.content(), 1);
  }

  // On every rank, with what it finds first.
  void load(const std::function<void(int rank, Loaded& loaded)>& look) const {
    comm::run_local_ranks(kRanks, [&](comm::World& world) {
      checkpoint::Peers peers(world, 20.0);
      CheckpointSearch found({.tiers = tiers_of_node(world.rank()),
                              .run_id = "run-1",
                              .world = world,
                              .ranks_per_node = 1,
                              .peers = &peers,
                              .deadline = 20.0});
      std::optional<Loaded> loaded = found.next();
      ASSERT_TRUE(loaded.has_value());
      look(world.rank(), *loaded);
      loaded.reset();
      // What this node offers must be there until the other has read it.
      const auto group = world.make_world_group();
      ThreadPool pool(1);
      Stream stream(pool);
      group->barrier(stream).wait(stream);
    });
  }

  std::unique_ptr<comm::World> world_ = comm::make_lone_world(Device::cpu);
  TempDir directory_;
};

TEST_F(SearchOnNodes, TakesWhatANodeHasLostFromTheCopyOnAnother) {
  keep(tiers_of_node(0).copies(), 0, 20);
  keep(tiers_of_node(0).copies(), 1, 20);
  load([](int, Loaded& loaded) {
    EXPECT_TRUE(test::holds_example(loaded, 20, kRanks));
    EXPECT_TRUE(loaded.bad_places().empty());
  });
}

TEST_F(SearchOnNodes, ADamagedCopyIsRefusedOnBothNodes) {
  for (const int64_t rank : {0, 1}) keep(tiers_of_node(0).copies(), rank, 20);
  const std::filesystem::path shard = checkpoint::PartStore(tiers_of_node(0).copies()).list()[0].shard;
  std::filesystem::resize_file(shard, std::filesystem::file_size(shard) - 1);
  std::filesystem::resize_file(shard, std::filesystem::file_size(shard) + 1);
  load([&](int rank, Loaded& loaded) {
    EXPECT_THROW(test::holds_example(loaded, 20, kRanks), Error);
    ASSERT_EQ(loaded.bad_places().size(), 1u);
    const checkpoint::BadShardPlace bad = loaded.bad_places().front();
    EXPECT_TRUE(bad.damaged);
    EXPECT_EQ(bad.file, rank == 0 ? shard : std::filesystem::path());
    EXPECT_NE(bad.reason.find(rank == 0 ? "shard-g1" : "the copy that rank 0 offers"), std::string::npos) << bad.reason;
  });
}

}  // namespace
}  // namespace megalith::train
