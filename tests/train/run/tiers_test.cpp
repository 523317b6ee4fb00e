#include "train/run/tiers.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <thread>

#include "core/process/file_lock.h"
#include "temp_dir.h"

namespace megalith::train {
namespace {

using ::megalith::testing::TempDir;

TEST(Tiers, BelongToANodeByItsNumberOrByItsName) {
  config::Run run;
  run.trainer.devices = 4;
  run.exp_manager.explicit_log_dir = "/runs/a";
  run.exp_manager.checkpoint_callback_params.local_dirpath = "/disk/%n/x-%n";
  run.exp_manager.checkpoint_callback_params.memory_dirpath = "/memory/%n";
  const std::string of_run = tiers_of(run, 0).local.filename();
  EXPECT_EQ(tiers_of(run, 5).local, "/disk/1/x-1/" + of_run);
  const Tiers named = tiers_of(run, "gpu-%n-7");
  EXPECT_EQ(named.local, "/disk/gpu-%n-7/x-gpu-%n-7/" + of_run) << "whichever ranks it has";
  EXPECT_EQ(named.memory.string().rfind("/memory/gpu-%n-7/megalith-", 0), 0U) << named.memory;
  EXPECT_EQ(named.persistent, tiers_of(run, 5).persistent);
}

TEST(Tiers, ManyTryThemAtTheSameTime) {
  const testing::TempDir dir;
  const Tiers tiers{.persistent = dir / "checkpoints", .local = {}, .memory = {}};
  std::vector<std::string> problems(2);
  {
    std::vector<std::jthread> nodes;
    for (size_t node = 0; node < problems.size(); ++node) {
      nodes.emplace_back([&, node] {
        for (int i = 0; i < 30; ++i) problems[node] += why_not_writable(tiers, fmt::format("node-{}", node));
      });
    }
  }
  EXPECT_EQ(problems, std::vector<std::string>(2));
  EXPECT_TRUE(std::filesystem::is_empty(tiers.persistent));
}

TEST(Tiers, MemoryOfEarlierStartsCanBeUsedAgain) {
  constexpr size_t kBytes = 1 << 20;
  const TempDir dir;
  const Tiers own{.persistent = {}, .local = {}, .memory = dir / "user/own"};
  const Tiers other{.persistent = {}, .local = {}, .memory = dir / "user/other"};
  EXPECT_EQ(reusable_memory({}), 0);
  EXPECT_EQ(reusable_memory(own), 0);
  { const RunMemory made(own.memory); }
  replace_file(own.memory / "shard", std::string(kBytes, 'x'));
  const auto near = [](int64_t bytes) { return bytes / static_cast<int64_t>(kBytes); };
  EXPECT_EQ(near(reusable_memory(own)), 1);
  {
    const RunMemory used(own.memory);
    EXPECT_EQ(near(reusable_memory(own)), 1);
    EXPECT_EQ(near(reusable_memory(other)), 0) << "another run uses it";
  }
  EXPECT_EQ(near(reusable_memory(other)), 1) << "nobody does";
}

// A process that stands still while it opens its own directory keeps the lock of all of them.
TEST(Tiers, MemoryThatAMonitorKeepsIsOpenedWithoutWaiting) {
  const TempDir dir;
  const std::filesystem::path memory = dir / "user/own";
  const RunMemory monitor(memory);
  const File frozen = File::open_for_appending(dir / "user/lock");
  ASSERT_EQ(lock(frozen, LockMode::exclusive), LockResult::taken);
  const RunMemory rank(memory, true);
  EXPECT_EQ(try_lock(File::open_for_appending(memory / "lock")), LockResult::busy);
}

}  // namespace
}  // namespace megalith::train
