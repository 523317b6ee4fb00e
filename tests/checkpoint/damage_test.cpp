// "Write, damage any byte, load: it must refuse or give identical data."

#include <gtest/gtest.h>

#include <random>

#include "checkpoint/fixtures.h"
#include "checkpoint/store.h"
#include "temp_dir.h"

namespace megalith::checkpoint {
namespace {

namespace fs = std::filesystem;
using test::ExampleRun;
using testing::TempDir;

class Damage : public ::testing::Test {
 protected:
  Damage() : store_(directory_.path()), previous_(10), run_(20) {
    store_.save(previous_.snapshot());
    step_ = store_.save(run_.snapshot()).path;
  }

  // Verification must refuse, and loading must refuse or give what was saved.
  void expect_noticed(const std::string& what) {
    EXPECT_THROW(store_.open(20).verify(), Error) << what;
    try {
      Loaded loaded = store_.open(20);
      EXPECT_TRUE(run_.equals(loaded)) << what << ": wrong data was loaded";
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find("step-00000020"), std::string::npos) << what << ": " << error.what();
    }
  }

  void damage_everywhere(const fs::path& file) {
    const std::string good = test::bytes_of(file);
    std::mt19937 random(7);
    for (size_t i = 0; i < good.size(); ++i) {
      std::string bad = good;
      bad[i] = static_cast<char>(bad[i] ^ (1 + random() % 255));
      test::overwrite(file, bad);
      expect_noticed(file.filename().string() + " byte " + std::to_string(i));
    }
    for (size_t length = 0; length < good.size(); length += 1 + length / 16) {
      test::overwrite(file, good.substr(0, length));
      expect_noticed(file.filename().string() + " cut to " + std::to_string(length));
    }
    test::overwrite(file, good + "x");
    expect_noticed(file.filename().string() + " one byte longer");
    const Latest latest = store_.latest_verified();
    EXPECT_EQ(latest.step, 10);
    ASSERT_EQ(latest.passed_over.size(), 1u);
    EXPECT_EQ(latest.passed_over[0].name, "step-00000020");
    EXPECT_FALSE(latest.passed_over[0].reason.empty());
    test::overwrite(file, good);
    EXPECT_EQ(store_.latest_verified().step, 20);
  }

  TempDir directory_;
  Store store_;
  ExampleRun previous_;
  ExampleRun run_;
  fs::path step_;
};

TEST_F(Damage, OfAnyByteOfTheShard) {
  damage_everywhere(step_ / "shard-g1-r00000.safetensors");
}

TEST_F(Damage, OfAnyByteOfTheManifest) {
  damage_everywhere(step_ / "manifest.json");
}

TEST_F(Damage, AMissingShard) {
  fs::remove(step_ / "shard-g1-r00000.safetensors");
  EXPECT_EQ(store_.latest_verified().step, 10);
  EXPECT_EQ(store_.list()[0].status, StepStatus::damaged);
}

TEST_F(Damage, AShardOfAnotherStep) {
  fs::copy_file(directory_ / "step-00000010/shard-g1-r00000.safetensors", step_ / "shard-g1-r00000.safetensors",
                fs::copy_options::overwrite_existing);
  expect_noticed("foreign shard");
  EXPECT_EQ(store_.latest_verified().step, 10);
}

}  // namespace
}  // namespace megalith::checkpoint
