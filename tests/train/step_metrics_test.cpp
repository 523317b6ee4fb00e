#include "train/step_metrics.h"

#include <gtest/gtest.h>

#include "cost/flops.h"
#include "tiny_run.h"

namespace megalith::train::testing {
namespace {

const engine::StepResult kResult{.loss = 6.25, .backward_seconds = 0.25, .update = {.gradient_norm = 3.0}};

StepReport report(const engine::StepResult& result, int64_t step, double seconds) {
  return {.step = step,
          .samples = 4,
          .consumed_samples = 4 * (step + 1),
          .learning_rate = 0.01,
          .seconds = seconds,
          .data_wait = 0.125,
          .checkpoint_stall = 1.5,
          .result = result};
}

double number(const Metrics& metrics, std::string_view name) {
  const std::optional<double> found = number_in(metrics.values, name);
  EXPECT_TRUE(found.has_value()) << name;
  return found.value_or(0.0);
}

bool has(const Metrics& metrics, std::string_view name) {
  return number_in(metrics.values, name).has_value();
}

TEST(StepMetrics, NamesWhatAStepDid) {
  const config::Run run = tiny_run(kTinyGpt, "unused");
  StepMetrics of(run, {.padded_vocabulary = 264, .samples_in_dataset = 10});
  const Metrics metrics = of.of_step(report(kResult, 2, 0.5));
  EXPECT_EQ(metrics.kind, "train");
  EXPECT_EQ(metrics.step, 2);
  const double tflops = cost::model_flops_per_sample(run.model, 264) * 4 / 0.5 / 1e12;
  const std::pair<const char*, double> expected[] = {{"reduced_train_loss", 6.25},
                                                     {"lr", 0.01},
                                                     {"global_step", 2.0},
                                                     {"consumed_samples", 12.0},
                                                     {"grad_norm", 3.0},
                                                     {"epoch", 1.0},
                                                     {"step_time", 0.5},
                                                     {"train_backward_timing in s", 0.25},
                                                     {"data_wait", 0.125},
                                                     {"tflops", tflops},
                                                     {"tokens_per_second", 4 * 16 / 0.5},
                                                     {"checkpoint_stall", 1.5},
                                                     {"tflops_per_rank", tflops}};
  for (const auto& [name, value] : expected) EXPECT_EQ(number(metrics, name), value) << name;
  // What is not known is left out.
  for (const char* name :
       {"mfu", "floor_fraction", "communication_exposed", "slowest_rank", "rank_spread", "skipped"}) {
    EXPECT_FALSE(has(metrics, name)) << name;
  }
}

TEST(StepMetrics, MeanOverNemosFiveSteps) {
  StepMetrics of(tiny_run(kTinyGpt, "unused"), {});
  const double seconds[] = {10.0, 2.0, 2.0, 2.0, 2.0, 2.0};
  const double means[] = {10.0, 6.0, 14.0 / 3, 4.0, 3.6, 2.0};
  for (int64_t step = 0; step < 6; ++step) {
    const Metrics metrics = of.of_step(report(kResult, step, seconds[step]));
    EXPECT_DOUBLE_EQ(number(metrics, "train_step_timing in s"), means[step]);
    EXPECT_EQ(number(metrics, "step_time"), seconds[step]);
  }
}

TEST(StepMetrics, MfuIsOfOneRankAndFloorIsTheMeasuredOne) {
  config::Run run = tiny_run(kTinyGpt, "unused", {"exp_manager.step_floor_seconds=0.125"});
  run.trainer.devices = 4;
  StepMetrics of(run, {.padded_vocabulary = 264, .peak_tflops = 1e-6});
  const Metrics metrics = of.of_step(report(kResult, 0, 0.5));
  EXPECT_DOUBLE_EQ(number(metrics, "tflops_per_rank"), number(metrics, "tflops") / 4);
  EXPECT_DOUBLE_EQ(number(metrics, "mfu"), number(metrics, "tflops_per_rank") / 1e-6);
  EXPECT_EQ(number(metrics, "floor_fraction"), 0.25);
}

TEST(StepMetrics, ACpuHasNoPeak) {
  engine::EngineOptions options;
  options.stage.device = Device::cpu;
  EXPECT_FALSE(peak_tflops_of(options).has_value());
}

TEST(StepMetrics, RanksAndSkippedSteps) {
  engine::StepResult result = kResult;
  result.wait_seconds = 0.0625;
  result.spread = engine::RankSpread{.slowest_rank = 3, .slowest_seconds = 0.5, .fastest_seconds = 0.375};
  result.update.skipped = true;
  const Metrics metrics = StepMetrics(tiny_run(kTinyGpt, "unused"), {}).of_step(report(result, 0, 1.0));
  EXPECT_EQ(number(metrics, "communication_exposed"), 0.0625);
  EXPECT_EQ(number(metrics, "slowest_rank"), 3.0);
  EXPECT_EQ(number(metrics, "rank_spread"), 0.125);
  EXPECT_EQ(number(metrics, "skipped"), 1.0);
}

TEST(StepMetrics, MemoryByArenaIsToldOnce) {
  StepMetrics of(tiny_run(kTinyGpt, "unused"),
                 {.memory = {.rows = {{"weights", 1024, ""}, {"master weights", 2048, ""}}}});
  const Metrics first = of.of_step(report(kResult, 0, 1.0));
  EXPECT_EQ(number(first, "memory.weights"), 1024.0);
  EXPECT_EQ(number(first, "memory.master_weights"), 2048.0);
  EXPECT_FALSE(has(of.of_step(report(kResult, 1, 1.0)), "memory.weights"));
}

}  // namespace
}  // namespace megalith::train::testing
