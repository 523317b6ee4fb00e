#include "checkpoint/nodes/peer_copies.h"

#include <gtest/gtest.h>

#include <set>

#include "checkpoint/fixtures.h"
#include "checkpoint/savers.h"
#include "comm/local/local_world.h"
#include "expect_error.h"
#include "temp_dir.h"

namespace megalith::checkpoint {
namespace {

using test::expect_good;
using test::Savers;
using testing::TempDir;

constexpr int64_t kRanksPerNode = 2;

// Three nodes in one process, whose ranks save in memory and keep copies of each other.
class PeerCopiesTest : public ::testing::Test {
 protected:
  static constexpr int64_t kRanks = 3 * kRanksPerNode;

  PeerCopiesTest() : worlds_(comm::make_local_worlds(kRanks)) {
    for (const auto& world : worlds_) peers_.push_back(std::make_unique<Peers>(*world, 20.0));
    savers_ = std::make_unique<Savers>(kRanks, worlds_.front()->board(), directory_ / "persistent",
                                       [&](Saver::Options& options) { set_copies(options); });
  }

  void set_copies(Saver::Options& options) const {
    const int64_t rank = options.place.rank;
    options.copies.emplace(PeerCopies::Options{.directory = copies_of_node(rank / kRanksPerNode),
                                               .place = options.place,
                                               .ranks_per_node = kRanksPerNode,
                                               .peers = peers_[static_cast<size_t>(rank)].get()});
  }

  std::filesystem::path copies_of_node(int64_t node) const { return directory_ / fmt::format("node{}", node); }

  std::vector<Saver::Outcome> save(int64_t step, int64_t protected_step) {
    return savers_->save(step, [&](Saver::Job& job) {
      job.to_persistent = false;
      job.to_local = true;
      job.protected_step = protected_step;
    });
  }

  // (step, rank) of the copies on a node.
  std::set<std::pair<int64_t, int64_t>> held_by(int64_t node) const {
    std::set<std::pair<int64_t, int64_t>> held;
    for (const HeldPart& part : PartStore(copies_of_node(node)).list()) {
      Loaded(part.shard, part.manifest, [&](const ShardInfo&) { return std::vector<ShardPlace>{part.shard}; }).verify();
      held.emplace(part.manifest.state.step, part.manifest.part->rank);
    }
    return held;
  }

  using Held = std::set<std::pair<int64_t, int64_t>>;

  TempDir directory_;
  std::vector<std::unique_ptr<comm::World>> worlds_;
  std::vector<std::unique_ptr<Peers>> peers_;
  std::unique_ptr<Savers> savers_;
};

TEST_F(PeerCopiesTest, EachNodeKeepsThePartsOfTheOneBefore) {
  expect_good(save(10, -1));
  EXPECT_EQ(held_by(0), (Held{{10, 4}, {10, 5}}));
  EXPECT_EQ(held_by(1), (Held{{10, 0}, {10, 1}}));
  EXPECT_EQ(held_by(2), (Held{{10, 2}, {10, 3}}));
}

TEST_F(PeerCopiesTest, WhatIsProtectedStaysUntilANewerStepIs) {
  expect_good(save(10, -1));
  expect_good(save(20, 10));
  EXPECT_EQ(held_by(1), (Held{{10, 0}, {10, 1}, {20, 0}, {20, 1}}));
  expect_good(save(30, 20));
  EXPECT_EQ(held_by(1), (Held{{20, 0}, {20, 1}, {30, 0}, {30, 1}}));
}

TEST_F(PeerCopiesTest, CopiesOfRanksThatLiveElsewhereNowGo) {
  const test::ExampleRank other({.rank = 5, .ranks = kRanks}, 5);
  PartStore(copies_of_node(1)).save(other.state(), other.place(), other.content(), 1);
  expect_good(save(10, 5));
  EXPECT_EQ(held_by(1), (Held{{5, 5}, {10, 0}, {10, 1}})) << "the run may have to go on from it";
  expect_good(save(20, 10));
  EXPECT_EQ(held_by(1), (Held{{10, 0}, {10, 1}, {20, 0}, {20, 1}}));
}

TEST_F(PeerCopiesTest, ARankWithoutAPartIsNamedByItsKeeperAndDelaysNobody) {
  const auto fails_on_rank_2 = [&](Saver::Job& job) {
    job.to_persistent = false;
    job.to_local = true;
    job.protected_step = 10;
    if (job.image->pieces().front().box.offset[0] == 2 * test::ExampleRank::kRows)
      job.finish_image = [](ThreadPool&) { fail(ErrorKind::io, "no room for the image"); };
  };
  expect_good(save(10, -1));
  const std::vector<Saver::Outcome> outcomes = savers_->save(20, fails_on_rank_2);
  EXPECT_EQ(outcomes[2].failure, "no room for the image");
  EXPECT_EQ(outcomes[4].failure, "rank 2: no room for the image");
  for (const size_t rank : {0, 1, 3, 5}) EXPECT_EQ(outcomes[rank].failure, "") << rank;
  EXPECT_EQ(held_by(2), (Held{{10, 2}, {10, 3}, {20, 3}}));
}

TEST_F(PeerCopiesTest, ACopyThatCannotBeKeptIsAFailureOfBoth) {
  test::overwrite(copies_of_node(0), "no directory");
  const std::vector<Saver::Outcome> outcomes = save(10, -1);
  EXPECT_NE(outcomes[0].failure.find("node0"), std::string::npos) << outcomes[0].failure;
  EXPECT_NE(outcomes[4].failure.find("rank 0"), std::string::npos) << outcomes[4].failure;
  EXPECT_EQ(outcomes[2].failure, "");
}

TEST_F(PeerCopiesTest, NothingIsKeptOfBytesThatAreNotThoseOfTheirDigest) {
  const test::ExampleRank example({.rank = 0, .ranks = kRanks}, 10);
  ThreadPool pool(1);
  const FileDigests digests = digests_of(example.image().memory(), pool);
  std::vector<std::byte> changed(example.image().memory().begin(), example.image().memory().end());
  changed.back() ^= std::byte{1};
  Saver::Options options{.place = {.rank = 2, .ranks = kRanks}};
  set_copies(options);
  const Offer offer = peers_[0]->offer(digests, [&](int64_t offset, std::span<std::byte> into) {
    std::copy_n(changed.begin() + offset, into.size(), into.begin());
  });
  const Manifest part =
      manifest_of_part(example.state(), example.place(), {.file = "shard-g1-r00000.safetensors", .digests = digests},
                       example.image().pieces());
  const std::string message = error_of(ErrorKind::data, [&] { options.copies->keep(part, -1, 1); });
  EXPECT_NE(message.find("rank 0 offers is damaged"), std::string::npos) << message;
  EXPECT_TRUE(held_by(1).empty());
}

TEST_F(PeerCopiesTest, AreGoneWhenARunHasEndedWell) {
  expect_good(save(10, -1));
  for (int64_t rank = 0; rank < kRanks; ++rank) savers_->of(rank).remove_memory();
  for (const int64_t node : {0, 1, 2}) EXPECT_TRUE(std::filesystem::is_empty(copies_of_node(node)));
}

TEST(PeerCopies, NeedAnotherNode) {
  EXPECT_THROW(PeerCopies({.directory = "x", .place = {.rank = 0, .ranks = 2}, .ranks_per_node = 2}), Error);
}

}  // namespace
}  // namespace megalith::checkpoint
