#include "plan/price.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace megalith::plan {
namespace {

// 54 nodes, 5 failures per 1000 node-days: 320,000 s between two. Saving costs 0.6 s of training.
PricedRun some_run() {
  return {.step_s = 10,
          .tokens_of_step = 4e6,
          .gpus = 432,
          .nodes = 54,
          .checkpoint_bytes = 5.6e12,
          .checkpoint_copy_s = 0.6};
}

TEST(Price, ByHand) {
  const Price price = price_of(some_run(), {.tokens = 1e12, .price = 2.5});
  EXPECT_NEAR(price.write_s, 5.6e12 / 64e9, 1e-9);  // the file system, not 54 x 2 GB/s
  EXPECT_NEAR(price.between_failures_s, 320000, 1e-6);
  EXPECT_EQ(price.interval_steps, 62);  // sqrt(2 x 0.6 x 320,000) - 0.6 = 619 s
  EXPECT_NEAR(price.goodput, 1 - 0.6 / 620 - (310 + 30 + 120 + 87.5) / 320000, 1e-12);
  EXPECT_NEAR(price.days, 1e12 / (4e5 * 86400 * price.goodput), 1e-9);
  EXPECT_NEAR(price.gpu_hours, price.days * 24 * 432, 1e-6);
  EXPECT_NEAR(price.cost, price.gpu_hours * 2.5, 1e-6);
}

// 2,048 nodes: a failure in 2.3 h, a checkpoint every 100 s, 97.0 %.
TEST(Price, ManyNodes) {
  PricedRun run = some_run();
  run.nodes = 2048;
  run.step_s = 1;
  run.checkpoint_bytes = 0;
  const Price price = price_of(run, {.tokens = 1e12});
  EXPECT_NEAR(price.between_failures_s / 3600, 2.34, 0.01);
  EXPECT_NEAR(static_cast<double>(price.interval_steps), 100, 1);
  EXPECT_NEAR(price.goodput, 0.970, 0.001);
}

TEST(Price, OneSaveIsUnderWayAtATime) {
  PricedRun run = some_run();
  run.checkpoint_bytes = 64e12;  // 1000 s
  EXPECT_EQ(price_of(run, {.tokens = 1e12}).interval_steps, 100);
}

TEST(Price, FewerFailuresNeverTakeLonger) {
  double before = INFINITY;
  for (const double failures : {100.0, 30.0, 10.0, 5.0, 1.0, 0.1, 0.0}) {
    const double days = price_of(some_run(), {.tokens = 1e12, .failures = failures}).days;
    EXPECT_LE(days, before * (1 + 1e-3)) << failures;  // intervals are whole steps
    before = days;
  }
}

// Failures drawn at random over a run of ten days.
TEST(Price, AgreesWithRunsThatFail) {
  const PricedRun run = some_run();
  const Circumstances circumstances{.tokens = 1e12, .failures = 50};
  const Price price = price_of(run, circumstances);
  const double wanted = 10 * 86400;  // seconds of steps
  const double lost = circumstances.detection_s + circumstances.restart_s + price.read_s;
  std::mt19937 random(3);
  std::exponential_distribution<double> next_failure(1 / price.between_failures_s);
  double all = 0.0;
  constexpr int kRuns = 1000;
  for (int i = 0; i < kRuns; ++i) {
    double clock = 0.0;
    double saved = 0.0;
    double failure = next_failure(random);
    while (saved < wanted) {
      const double end = clock + price.interval_s + run.checkpoint_copy_s;
      if (failure >= end) {
        saved += price.interval_s;
        clock = end;
      } else {
        clock = failure + lost;
        failure = clock + next_failure(random);
      }
    }
    all += clock;
  }
  EXPECT_NEAR(wanted / (all / kRuns), price.goodput, 0.01);
}

}  // namespace
}  // namespace megalith::plan
