#include "config/batch_ramp.h"

#include <gtest/gtest.h>

namespace megalith::config {
namespace {

BatchRamp ramp_of(std::vector<int64_t> rampup, int64_t global_batch) {
  Model model;
  model.global_batch_size = global_batch;
  model.rampup_batch_size = std::move(rampup);
  return BatchRamp(model);
}

TEST(BatchRamp, IsTheGlobalBatchWithoutARamp) {
  const BatchRamp none = ramp_of({}, 8);
  EXPECT_EQ(none.batch_at(0), 8);
  EXPECT_EQ(none.batches(), std::vector<int64_t>{8});
  EXPECT_EQ(none.consumed_after(16, 5), 56);
  EXPECT_EQ(ramp_of({8, 2, 100}, 8).batches(), std::vector<int64_t>{8});
}

// Megatron's numbers for --rampup-batch-size 32 32 195312500 --global-batch-size 1536: 47 increments.
TEST(BatchRamp, FollowsMegatronsRule) {
  const BatchRamp ramp = ramp_of({32, 32, 195312500}, 1536);
  EXPECT_EQ(ramp.batches().size(), 48u);
  EXPECT_EQ(ramp.batch_at(0), 32);
  EXPECT_EQ(ramp.batch_at(4155584), 32);  // 195312500 / 47 = 4155585.1
  EXPECT_EQ(ramp.batch_at(4155586), 64);
  EXPECT_EQ(ramp.batch_at(195312499), 1504);
  EXPECT_EQ(ramp.batch_at(195312500), 1536);
  EXPECT_EQ(ramp.batch_at(195312501), 1536);
}

TEST(BatchRamp, StepsAddUp) {
  const BatchRamp ramp = ramp_of({2, 2, 12}, 8);  // three increments of 4 samples
  EXPECT_EQ(ramp.batches(), (std::vector<int64_t>{2, 4, 6, 8}));
  // Batches of 2, 2, 4, 6, 8, 8: each by what was consumed before it.
  const std::vector<int64_t> consumed{0, 2, 4, 8, 14, 22, 30};
  for (size_t steps = 0; steps < consumed.size(); ++steps) {
    EXPECT_EQ(ramp.consumed_after(0, static_cast<int64_t>(steps)), consumed[steps]);
    EXPECT_EQ(ramp.consumed_after(consumed[steps], static_cast<int64_t>(consumed.size() - 1 - steps)), 30);
  }
}

}  // namespace
}  // namespace megalith::config
