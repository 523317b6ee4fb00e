// Random damage to checkpoints of several shards, on one tier and on two: none is accepted.

#include <gtest/gtest.h>

#include <cstdlib>
#include <random>

#include "checkpoint/example_ranks.h"
#include "checkpoint/file_names.h"
#include "checkpoint/fixtures.h"
#include "temp_dir.h"

namespace megalith::checkpoint {
namespace {

namespace fs = std::filesystem;
using test::ExampleRank;
using testing::TempDir;

constexpr int64_t kRanks = 3;
constexpr int64_t kOldStep = 10;
constexpr int64_t kStep = 20;

int64_t trials() {
  return std::getenv("MEGALITH_LONG_TESTS") != nullptr ? 10'000 : 400;
}

enum class Kind { flipped_bit, cut, longer, swapped, stale, missing };
constexpr int kKinds = 6;

class ManyShards : public ::testing::Test {
 protected:
  ManyShards() : store_(directory_ / "persistent") {
    for (const int64_t step : {kOldStep, kStep}) {
      std::vector<Manifest> parts;
      for (int64_t rank = 0; rank < kRanks; ++rank) {
        const ExampleRank example({.rank = rank, .ranks = kRanks}, step);
        parts.push_back(store_.write_part(example.state(), example.place(), example.content(), 1));
      }
      store_.commit(merge(parts, "parts"));
    }
    fs::copy(store_.directory(), other_, fs::copy_options::recursive);
    names_ = {std::string(kManifestName)};
    for (int64_t rank = 0; rank < kRanks; ++rank) names_.push_back(shard_name({.generation = 1, .rank = rank}));
  }

  fs::path step() const { return store_.directory_of(kStep); }
  size_t pick(size_t count) { return std::uniform_int_distribution<size_t>(0, count - 1)(random_); }
  std::string pick_shard() { return names_[1 + pick(kRanks)]; }

  // To a file in a step's directory. The files that are not as they were.
  std::vector<std::string> damage(const fs::path& step_directory, const std::string& name, Kind kind) {
    const fs::path path = step_directory / name;
    std::string bytes = test::bytes_of(path);
    switch (kind) {
      case Kind::flipped_bit: {
        char& byte = bytes[pick(bytes.size())];
        byte = static_cast<char>(byte ^ (1 << pick(8)));
        break;
      }
      case Kind::cut:
        bytes.resize(pick(bytes.size()));
        break;
      case Kind::longer:
        bytes += std::string(1 + pick(100), static_cast<char>(pick(256)));
        break;
      case Kind::swapped: {
        const std::string other =
            names_[(std::find(names_.begin(), names_.end(), name) - names_.begin() + 1) % names_.size()];
        fs::rename(step_directory / other, step_directory / "aside");
        fs::rename(path, step_directory / other);
        fs::rename(step_directory / "aside", path);
        return {name, other};
      }
      case Kind::stale:
        bytes = test::bytes_of(step_directory.parent_path() / step_name(kOldStep) / name);
        break;
      case Kind::missing:
        fs::remove(path);
        return {name};
    }
    test::overwrite(path, bytes);
    return {name};
  }

  // Puts a step's directory in order again, from the other tier.
  void heal(const fs::path& good, const fs::path& bad) {
    for (const std::string& name : names_) fs::copy_file(good / name, bad / name, fs::copy_options::overwrite_existing);
  }

  void expect_named(const Error& error, const std::vector<std::string>& files, const std::string& what) {
    const std::string message = error.what();
    const bool names_file = std::any_of(
        files.begin(), files.end(), [&](const std::string& file) { return message.find(file) != std::string::npos; });
    // An older manifest is whole in itself, and in the wrong directory.
    const bool names_step = message.find("holds a checkpoint of step 10") != std::string::npos;
    EXPECT_TRUE(message.find(step().string()) != std::string::npos && (names_file || names_step))
        << what << ": " << message;
  }

  TempDir directory_;
  Store store_;
  fs::path other_ = directory_ / "other";
  std::vector<std::string> names_;
  std::mt19937 random_{7};
};

TEST_F(ManyShards, DamageIsRefusedAndTheFileNamed) {
  int64_t accepted = 0;
  for (int64_t trial = 0; trial < trials(); ++trial) {
    const auto kind = static_cast<Kind>(trial % kKinds);
    const std::string name = names_[pick(names_.size())];
    const std::vector<std::string> damaged = damage(step(), name, kind);
    const std::string what = fmt::format("trial {}: {} of kind {}", trial, name, static_cast<int>(kind));
    const auto expect_refused = [&](const auto& action) {
      try {
        action();
        ++accepted;
        ADD_FAILURE() << what << " was accepted";
      } catch (const Error& error) {
        expect_named(error, damaged, what);
      }
    };
    expect_refused([&] { store_.open(kStep).verify(); });
    expect_refused([&] {
      Loaded loaded = store_.open(kStep);
      test::holds_example(loaded, kStep, kRanks);
    });
    EXPECT_EQ(Store(store_.directory()).latest_verified().step, kOldStep) << what;
    heal(other_ / step_name(kStep), step());
  }
  EXPECT_EQ(accepted, 0);
  EXPECT_EQ(store_.latest_verified().step, kStep);
}

// As a restart reads it: shards first from one tier, then from the other.
TEST_F(ManyShards, DamageOnOneTierIsServedFromTheOtherAndOnBothRefused) {
  const Manifest manifest = store_.open(kStep).manifest();
  const fs::path places[] = {other_ / step_name(kStep), step()};
  const TempDir good;
  fs::copy(step(), good.path(), fs::copy_options::recursive);
  const auto open = [&] {
    return Loaded("both tiers", manifest, [&](const ShardInfo& shard) {
      return std::vector<ShardPlace>{places[0] / shard.file, places[1] / shard.file};
    });
  };
  for (int64_t trial = 0; trial < trials(); ++trial) {
    const auto kind = static_cast<Kind>(trial % kKinds);
    const std::string name = pick_shard();
    const std::string what = fmt::format("trial {}: {} of kind {}", trial, name, static_cast<int>(kind));
    const std::vector<std::string> damaged = damage(places[0], name, kind);
    Loaded served = open();
    EXPECT_TRUE(test::holds_example(served, kStep, kRanks)) << what;
    served.verify();
    for (const BadShardPlace& bad : served.bad_places()) EXPECT_EQ(bad.file.parent_path(), places[0]) << what;
    EXPECT_EQ(served.bad_places().empty(), kind == Kind::missing) << what;

    const auto kind_there = static_cast<Kind>(pick(kKinds));
    damage(places[1], name, kind_there);
    Loaded refused = open();
    EXPECT_THROW(refused.verify(), Error) << what;
    EXPECT_THROW(test::holds_example(refused, kStep, kRanks), Error) << what;
    for (const fs::path& place : places) heal(good.path(), place);
  }
}

}  // namespace
}  // namespace megalith::checkpoint
