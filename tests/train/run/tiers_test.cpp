#include "train/run/tiers.h"

#include <gtest/gtest.h>

#include "temp_dir.h"

namespace megalith::train {
namespace {

using ::megalith::testing::TempDir;

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

}  // namespace
}  // namespace megalith::train
