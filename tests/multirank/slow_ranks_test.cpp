#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "layout_run.h"

namespace megalith::train::testing {
namespace {

constexpr auto kDelay = std::chrono::milliseconds(60);
constexpr double kDelaySeconds = 0.06;

LayoutCase two_ranks() {
  return {.config = {.layers = 1,
                     .hidden = 32,
                     .ffn = 64,
                     .heads = 2,
                     .kv_heads = 2,
                     .head_dim = 16,
                     .vocabulary = 50,
                     .padded_vocabulary = 64,
                     .max_positions = 16},
          .layout = {.data = 2},
          .global_batch = 2};
}

// Steps in which one rank takes longer than the other; what each rank is told of the last one.
std::vector<engine::StepResult> run_with_slow_rank(int slow) {
  const LayoutCase test = two_ranks();
  std::vector<engine::StepResult> results(2);
  comm::run_local_ranks(2, [&](comm::World& world) {
    engine::Engine engine = make_engine(engine_options(test), world);
    engine.initialise(5);
    for (int64_t step = 0; step < 3; ++step) {
      const data::StepBatch batch = batch_of(test, step, engine.place().dp);
      bool is_late = world.rank() == slow;
      const ops::OpObservation delay(engine.stream(), [&](const ops::OpCall& call) {
        if (is_late && call.cost.kind == ops::OpKind::product) {
          std::this_thread::sleep_for(kDelay);
          is_late = false;
        }
      });
      engine.run_step({.step = step, .weight = batch.total_weight, .learning_rate = 0.01}, batch.micro_batches);
      const engine::StepResult result = engine.result_of_step(0);
      EXPECT_EQ(result.spread.has_value(), step > 0) << "the first step has none before it";
      results[static_cast<size_t>(world.rank())] = result;
    }
  });
  return results;
}

TEST(SlowRanks, NamesTheSlowRankAndSaysWhoWaited) {
  for (const int slow : {0, 1}) {
    const std::vector<engine::StepResult> results = run_with_slow_rank(slow);
    for (const engine::StepResult& result : results) {
      ASSERT_TRUE(result.spread.has_value());
      EXPECT_EQ(result.spread->slowest_rank, slow);
      EXPECT_GE(result.spread->slowest_seconds, kDelaySeconds);
      EXPECT_LT(result.spread->fastest_seconds, result.spread->slowest_seconds);
    }
    const double waited = results[static_cast<size_t>(1 - slow)].wait_seconds.value_or(0.0);
    EXPECT_GT(waited, kDelaySeconds / 2);
    EXPECT_LT(results[static_cast<size_t>(slow)].wait_seconds.value_or(1.0), waited);
  }
}

TEST(SlowRanks, ARankAloneWaitsForNobody) {
  LayoutCase test = two_ranks();
  test.layout = {};
  const auto world = comm::make_lone_world(Device::cpu);
  engine::Engine engine = make_engine(engine_options(test), *world);
  engine.initialise(5);
  const data::StepBatch batch = batch_of(test, 0, 0);
  engine.run_step({.weight = batch.total_weight, .learning_rate = 0.01}, batch.micro_batches);
  const engine::StepResult result = engine.result_of_step(0);
  EXPECT_FALSE(result.wait_seconds.has_value());
  EXPECT_FALSE(result.spread.has_value());
}

}  // namespace
}  // namespace megalith::train::testing
