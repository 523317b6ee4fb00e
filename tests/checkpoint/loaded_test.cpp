#include "checkpoint/loaded.h"

#include <gtest/gtest.h>

#include <map>

#include "checkpoint/example_ranks.h"
#include "checkpoint/nodes/part_store.h"
#include "expect_error.h"
#include "temp_dir.h"

namespace megalith::checkpoint {
namespace {

using test::ExampleRank;
using testing::TempDir;

constexpr int64_t kStep = 20;

// Passes all on, and counts those of its kind.
class CountedSource final : public ByteSource {
 public:
  CountedSource(std::unique_ptr<ByteSource> source, int64_t& open, int64_t& most)
      : source_(std::move(source)), open_(open) {
    most = std::max(most, ++open_);
  }
  ~CountedSource() override { --open_; }
  CountedSource(const CountedSource&) = delete;
  CountedSource& operator=(const CountedSource&) = delete;

  const std::string& name() const override { return source_->name(); }
  int64_t size() const override { return source_->size(); }
  void read_at(int64_t offset, std::span<std::byte> into) override { source_->read_at(offset, into); }

 private:
  std::unique_ptr<ByteSource> source_;
  int64_t& open_;
};

// A checkpoint of many ranks, a shard each.
class LoadedOfManyShards : public ::testing::Test {
 protected:
  static constexpr int64_t kRanks = 300;

  LoadedOfManyShards() {
    const PartStore store(directory_.path());
    std::vector<Manifest> parts;
    for (int64_t rank = 0; rank < kRanks; ++rank) {
      const ExampleRank example({.rank = rank, .ranks = kRanks}, kStep);
      store.save(example.state(), example.place(), example.content(), 1);
    }
    for (const HeldPart& part : store.list()) {
      parts.push_back(part.manifest);
      files_[part.manifest.shards.front().file] = part.shard;
    }
    manifest_ = merge(parts, "node");
  }

  Loaded open() {
    return Loaded("node", manifest_, [this](const ShardInfo& shard) {
      const ShardPlace file(files_.at(shard.file));
      return std::vector<ShardPlace>{
          ShardPlace(file.name, [this, file] { return std::make_unique<CountedSource>(file.open(), open_, most_); })};
    });
  }

  TempDir directory_;
  std::map<std::string, std::filesystem::path> files_;
  Manifest manifest_;
  int64_t open_ = 0;
  int64_t most_ = 0;
};

TEST_F(LoadedOfManyShards, AreReadWithFewOfThemOpen) {
  Loaded loaded = open();
  EXPECT_TRUE(test::holds_example(loaded, kStep, kRanks));
  EXPECT_EQ(most_, 256);
  EXPECT_TRUE(test::holds_example(loaded, kStep, kRanks)) << "those that were closed are opened again";
  EXPECT_EQ(most_, 256);
}

TEST_F(LoadedOfManyShards, AreVerifiedWithFewOfThemOpen) {
  Loaded loaded = open();
  loaded.verify();
  EXPECT_EQ(most_, 256);
  EXPECT_EQ(loaded.verified_chunks(), std::vector<bool>(static_cast<size_t>(kRanks), true));
  std::filesystem::resize_file(files_.begin()->second, 100);
  Loaded torn = open();
  expect_error(ErrorKind::data, {"has 100 bytes"}, [&] { torn.verify(); });
}

}  // namespace
}  // namespace megalith::checkpoint
