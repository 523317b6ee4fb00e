#include "parallel/schedule.h"

#include <gtest/gtest.h>

#include "parallel/layout.h"

namespace megalith::parallel {
namespace {

TEST(SingleStageSchedule, EachMicroBatchGoesForwardThenBackward) {
  const Schedule schedule = single_stage_schedule(3);
  ASSERT_EQ(schedule.size(), 6U);
  for (int64_t i = 0; i < 3; ++i) {
    EXPECT_EQ(schedule[static_cast<size_t>(2 * i)].kind, ActionKind::forward);
    EXPECT_EQ(schedule[static_cast<size_t>(2 * i + 1)].kind, ActionKind::backward);
    EXPECT_EQ(schedule[static_cast<size_t>(2 * i + 1)].micro_batch, i);
  }
}

TEST(MicroBatchesAlive, FollowsOneForwardOneBackward) {
  const Layout plain{.pipeline = 8};
  EXPECT_EQ(micro_batches_alive(plain, 0, 64), 8);
  EXPECT_EQ(micro_batches_alive(plain, 7, 64), 1);
  EXPECT_EQ(micro_batches_alive(plain, 0, 4), 4);
  // Megatron's interleaving holds (1 + (pp - 1) / (pp * vp)) times as much on the first stage.
  const Layout interleaved{.pipeline = 8, .chunks = 2};
  EXPECT_EQ(micro_batches_alive(interleaved, 0, 64), 12);
}

}  // namespace
}  // namespace megalith::parallel
