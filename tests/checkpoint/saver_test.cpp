#include "checkpoint/saver.h"

#include <gtest/gtest.h>

#include <future>
#include <memory>

#include "checkpoint/example_ranks.h"
#include "checkpoint/file_names.h"
#include "checkpoint/fixtures.h"
#include "checkpoint/savers.h"
#include "core/clock.h"
#include "core/process/failpoint.h"
#include "temp_dir.h"

namespace megalith::checkpoint {
namespace {

namespace fs = std::filesystem;
using test::ExampleRank;
using test::expect_good;
using test::Savers;
using testing::TempDir;

bool holds(const Store& store, int64_t step, int64_t ranks) {
  Loaded loaded = store.open(step);
  return test::holds_example(loaded, step, ranks);
}

// Its training has ended with an error, because the other rank is gone: it must not wait for it until the deadline.
TEST(Saver, ARankThatLeavesHasLittlePatience) {
  const TempDir directory;
  comm::LocalBoard board;
  const double begin = monotonic_seconds();
  {
    Savers savers(2, board, directory.path(), [](Saver::Options& options) {
      options.deadline = 600.0;
      options.patience = 0.1;
    });
    savers.begin(0, 5);
  }
  EXPECT_LT(monotonic_seconds() - begin, 60.0);
  EXPECT_TRUE(Store(directory.path()).list().empty()) << "what it wrote alone is taken back";
}

TEST(Saver, RanksCommitOneCheckpointTogether) {
  constexpr int64_t kRanks = 4;
  const TempDir directory;
  comm::LocalBoard board;
  Savers savers(kRanks, board, directory / "checkpoints");
  for (const int64_t step : {10, 20, 30, 40}) {
    const std::vector<Saver::Outcome> outcomes = savers.save(step);
    expect_good(outcomes);
    EXPECT_EQ(outcomes[0].step, step);
    EXPECT_EQ(outcomes[0].result.path.filename(), step_name(step));
    EXPECT_TRUE(outcomes[0].result.warnings.empty());
  }
  Store store(directory / "checkpoints");
  EXPECT_EQ(store.latest_verified().step, 40);
  for (const int64_t step : {10, 40}) EXPECT_TRUE(holds(store, step, kRanks));
  EXPECT_EQ(store.open(40).manifest().shards.size(), 4u);
  EXPECT_FALSE(savers.of(0).take_outcome().has_value());
}

TEST(Saver, WhereOneRanksDiskFailsNobodyCommits) {
  constexpr int64_t kRanks = 3;
  for (int64_t bad = 0; bad < kRanks; ++bad) {
    const TempDir directory;
    test::overwrite(directory / "file", "not a directory");
    comm::LocalBoard board;
    expect_good(Savers(kRanks, board, directory / "checkpoints").save(10));
    Savers savers(kRanks, board, directory / "checkpoints", [&](Saver::Options& options) {
      if (options.place.rank == bad) options.persistent = directory / "file/checkpoints";
    });
    const std::vector<Saver::Outcome> outcomes = savers.save(20);
    for (int64_t rank = 0; rank < kRanks; ++rank) {
      const std::string& failure = outcomes[static_cast<size_t>(rank)].failure;
      EXPECT_NE(failure.find("file/checkpoints"), std::string::npos) << failure;
      EXPECT_TRUE(rank == bad || failure.find(fmt::format("rank {}: ", bad)) != std::string::npos) << failure;
    }
    EXPECT_FALSE(fs::exists(directory / "checkpoints/step-00000020"));
    EXPECT_EQ(Store(directory / "checkpoints").latest_verified().step, 10);
  }
}

TEST(Saver, AFailureAnywhereLeavesNothingAndTheNextSaveIsGood) {
  constexpr int64_t kRanks = 3;
  const TempDir directory;
  comm::LocalBoard board;
  Savers savers(kRanks, board, directory.path());
  Store store(directory.path());
  int64_t step = 10;
  expect_good(savers.save(step));
  // The writes of three shards and of the manifest, in any order.
  for (const char* failpoint : {"checkpoint.before_shard=io@2", "file.write=io@1", "file.write=io@2", "file.write=io@3",
                                "file.write=io@4", "checkpoint.before_manifest=io", "file.rename=io@1"}) {
    arm_failpoint(failpoint);
    const std::vector<Saver::Outcome> outcomes = savers.save(step + 10);
    disarm_failpoints();
    for (const Saver::Outcome& outcome : outcomes)
      EXPECT_NE(outcome.failure.find("injected I/O error"), std::string::npos) << failpoint << ": " << outcome.failure;
    EXPECT_EQ(std::ssize(store.list()), step / 10) << failpoint;
    EXPECT_TRUE(holds(store, step, kRanks)) << failpoint;
    step += 10;
    expect_good(savers.save(step));
  }
  EXPECT_TRUE(holds(store, step, kRanks));
}

TEST(Saver, ASnapshotThatFailsIsToldToAllRanks) {
  const TempDir directory;
  comm::LocalBoard board;
  Savers savers(2, board, directory.path());
  savers.begin(0, 20);
  savers.begin(
      1, 20, [](Saver::Job& job) { job.finish_image = [](ThreadPool&) { fail(ErrorKind::device, "a copy failed"); }; });
  for (int64_t rank = 0; rank < 2; ++rank) {
    const std::string failure = savers.end(rank).failure;
    EXPECT_NE(failure.find("rank 1: "), std::string::npos) << failure;
    EXPECT_NE(failure.find("a copy failed"), std::string::npos) << failure;
  }
  EXPECT_TRUE(Store(directory.path()).list().empty());
}

TEST(Saver, ARankThatDoesNotComeIsNamedAtTheDeadline) {
  const TempDir directory;
  comm::LocalBoard board;
  Savers savers(2, board, directory.path(), [](Saver::Options& options) { options.deadline = 0.1; });
  savers.begin(0, 20);
  const std::string failure = savers.end(0).failure;
  EXPECT_NE(failure.find("rank 1"), std::string::npos) << failure;
  EXPECT_TRUE(Store(directory.path()).list().empty());
}

// Damages the shard of rank 1 right after the commit.
class DamagingBoard final : public comm::Board {
 public:
  explicit DamagingBoard(fs::path shard) : shard_(std::move(shard)) {}
  void remove(const std::string& prefix) override { board_.remove(prefix); }

 private:
  void set(const std::string& key, const std::string& value) override {
    const bool is_page = key.find('#') != std::string::npos;
    if (key.find("/result/") != std::string::npos && !is_page && fs::exists(shard_)) {
      std::string bytes = test::bytes_of(shard_);
      bytes.back() = static_cast<char>(bytes.back() ^ 1);
      test::overwrite(shard_, bytes);
    }
    board_.post(key, value);
  }
  std::string get(const std::string& key) override { return board_.read(key).value_or(""); }

  fs::path shard_;
  comm::LocalBoard board_;
};

TEST(Saver, NothingOlderGoesBeforeTheNewOneWasReadBack) {
  const TempDir directory;
  DamagingBoard board(directory / "step-00000030/shard-g1-r00001.safetensors");
  Savers savers(2, board, directory.path(), [](Saver::Options& options) { options.persistent_keep = 1; });
  expect_good(savers.save(10));
  const std::vector<Saver::Outcome> replaced = savers.save(20);
  expect_good(replaced);
  EXPECT_EQ(replaced[0].result.removed, std::vector<std::string>{"step-00000010"});

  const std::vector<Saver::Outcome> outcomes = savers.save(30);
  EXPECT_NE(outcomes[0].failure.find("rank 1: "), std::string::npos) << outcomes[0].failure;
  EXPECT_NE(outcomes[1].failure.find("shard-g1-r00001.safetensors is damaged"), std::string::npos);
  Store store(directory.path(), 1);
  EXPECT_EQ(store.latest_verified().step, 20);
}

TEST(Saver, OneSaveAtATime) {
  const TempDir directory;
  comm::LocalBoard board;
  Savers savers(1, board, directory.path());
  std::promise<void> copied;
  savers.begin(0, 10, [&](Saver::Job& job) { job.finish_image = [&](ThreadPool&) { copied.get_future().wait(); }; });
  EXPECT_TRUE(savers.of(0).busy());
  EXPECT_FALSE(savers.of(0).take_outcome().has_value());
  const ExampleRank next({}, 20);
  EXPECT_THROW(savers.of(0).begin({.state = next.state(), .image = &next.image(), .finish_image = [](ThreadPool&) {}}),
               Error);
  copied.set_value();
  EXPECT_EQ(savers.end(0).step, 10);
  EXPECT_FALSE(savers.of(0).busy());
  EXPECT_EQ(std::ssize(Store(directory.path()).list()), 1);
}

TEST(Saver, EndsWhatIsUnderWayWhenItGoes) {
  const TempDir directory;
  comm::LocalBoard board;
  {
    Savers savers(2, board, directory.path());
    for (int64_t rank = 0; rank < 2; ++rank) savers.begin(rank, 20);
    savers.of(0).wait();
  }
  EXPECT_TRUE(holds(Store(directory.path()), 20, 2));
}

TEST(Saver, KeepsPartsOnTheNode) {
  const TempDir directory;
  comm::LocalBoard board;
  Savers savers(2, board, directory / "checkpoints",
                [&](Saver::Options& options) { options.local = directory / "node"; });
  for (const int64_t step : {10, 20, 30}) {
    const std::vector<Saver::Outcome> outcomes = savers.save(step, [](Saver::Job& job) {
      job.to_persistent = false;
      job.to_local = true;
    });
    expect_good(outcomes);
    EXPECT_FALSE(outcomes[0].persistent);
  }
  EXPECT_EQ(PartStore(directory / "node").list().size(), 4u);
  EXPECT_FALSE(fs::exists(directory / "checkpoints"));
}

TEST(Saver, KeepsACopyInMemoryUntilItIsRevoked) {
  const TempDir directory;
  comm::LocalBoard board;
  Savers savers(2, board, directory / "checkpoints",
                [&](Saver::Options& options) { options.memory = directory / "memory"; });
  const MemoryParts memory(directory / "memory");
  make_directory(memory.directory());
  for (int64_t rank = 0; rank < 2; ++rank) {
    const ExampleRank example({.rank = rank, .ranks = 2}, 10);
    File::create_new(memory.shard_of(rank)).write(example.image().memory());
  }
  expect_good(savers.save(10));
  std::vector<Manifest> parts;
  for (const HeldPart& part : memory.list()) parts.push_back(part.manifest);
  ASSERT_EQ(parts.size(), 2u);
  Loaded loaded("memory", merge(parts, "memory"),
                [&](const ShardInfo& shard) { return std::vector<ShardPlace>{memory.directory() / shard.file}; });
  EXPECT_TRUE(test::holds_example(loaded, 10, 2));

  test::overwrite(memory.shard_of(2), "of a run that had three ranks");
  savers.of(1).revoke_memory();
  EXPECT_EQ(memory.list().size(), 1u);
  EXPECT_FALSE(fs::exists(memory.shard_of(2)));
  for (int64_t rank = 0; rank < 2; ++rank) savers.of(rank).remove_memory();
  EXPECT_TRUE(fs::is_empty(memory.directory()));
}

}  // namespace
}  // namespace megalith::checkpoint
