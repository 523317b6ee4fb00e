#include "plan/measured_step.h"

#include <gtest/gtest.h>

namespace megalith::plan {
namespace {

constexpr double kTiny = 1e-12;

// Messages of 1 KB that take no time, so that only stages do.
comm::Wire still_wire() {
  return {.name = "still", .links = {comm::Link{.bytes_per_second = 1e24}, comm::Link{.bytes_per_second = 1e24}}};
}

engine::StageRequest request_of(const parallel::Layout& layout, int64_t micro_batches) {
  return {.config = {.layers = 8, .hidden = 32, .compute = DType::bf16},
          .layout = layout,
          .batch = 1,
          .length = 16,
          .micro_batches = micro_batches};
}

MeasuredStage stage_of(int64_t stage, double forward, double backward, size_t chunks = 1) {
  return {.stage = stage, .chunks = {chunks, {.forward = forward, .backward = backward}}};
}

TEST(MeasuredStep, EqualStagesWaitForAFullPipeline) {
  const engine::StageRequest request = request_of({.pipeline = 4}, 16);
  const MeasuredStep step = step_of(request, still_wire(), {stage_of(1, 1.0, 2.0)});
  EXPECT_NEAR(step.pipeline, (16 + 3) * 3.0, kTiny);
  EXPECT_NEAR(step.idle, 3 * 3.0, kTiny);
}

TEST(MeasuredStep, InterleavedStagesWaitLess) {
  const engine::StageRequest request = request_of({.pipeline = 4, .chunks = 2}, 16);
  const MeasuredStep step = step_of(request, still_wire(), {stage_of(1, 0.5, 1.0, 2)});
  EXPECT_NEAR(step.pipeline, 16 * 3.0 + 3 * 3.0 / 2, kTiny);
}

TEST(MeasuredStep, TheSlowestStageSetsThePace) {
  const engine::StageRequest request = request_of({.pipeline = 4}, 16);
  const std::vector<MeasuredStage> measured = {stage_of(0, 1.0, 2.0), stage_of(2, 1.0, 2.0), stage_of(3, 2.0, 3.0)};
  const MeasuredStep step = step_of(request, still_wire(), measured);
  EXPECT_NEAR(step.pipeline, 16 * 5.0 + 3 * 3.0, kTiny);
  EXPECT_NEAR(step.idle, 3 * 3.0, kTiny);
}

TEST(MeasuredStep, BeginsAndEndsAsTheSlowestRankDoes) {
  std::vector<MeasuredStage> measured = {stage_of(0, 1.0, 2.0), stage_of(1, 1.0, 2.0)};
  measured[0].begin = 0.5;
  measured[0].end = 0.25;
  measured[1].end = 4.0;
  const MeasuredStep step = step_of(request_of({.pipeline = 2}, 4), still_wire(), measured);
  EXPECT_EQ(step.begin, 0.5);
  EXPECT_EQ(step.end, 4.0);
  EXPECT_NEAR(step.seconds(), 4.5 + 5 * 3.0, kTiny);
}

TEST(MeasuredStep, HalvesOfBackwardHaveTheirOwnTimes) {
  const engine::StageRequest request =
      request_of({.pipeline = 2, .schedule = parallel::PipelineSchedule::zero_bubble}, 8);
  MeasuredStage stage{.stage = 0, .chunks = {{.forward = 1.0, .backward_input = 1.0, .backward_weight = 1.0}}};
  const double equal = step_of(request, still_wire(), {stage}).pipeline;
  EXPECT_LT(equal, 9 * 3.0);  // less than 1F1B
  stage.chunks[0].backward_weight = 2.0;
  EXPECT_NEAR(step_of(request, still_wire(), {stage}).pipeline - equal, 8.0, 1.0 + kTiny);
}

TEST(MeasuredStep, AStageThatWasNotMeasuredIsLikeAMiddleOne) {
  const std::vector<MeasuredStage> measured = {stage_of(0, 1, 1), stage_of(2, 2, 2), stage_of(5, 3, 3),
                                               stage_of(7, 4, 4)};
  for (const auto& [stage, like] : std::map<int64_t, int64_t>{{0, 0}, {1, 2}, {2, 2}, {3, 2}, {4, 5}, {6, 5}, {7, 7}})
    EXPECT_EQ(like_stage(measured, stage, 8).stage, like) << stage;
  EXPECT_EQ(like_stage({stage_of(7, 4, 4)}, 3, 8).stage, 7);
  EXPECT_EQ(like_stage({stage_of(0, 1, 1), stage_of(7, 4, 4)}, 5, 8).stage, 7);
}

TEST(MeasuredStep, MessagesTakeWhatTheWireSays) {
  // 8 x 32 bf16 = 512 bytes; two stages on each machine.
  const engine::StageRequest request = request_of({.tensor = 2, .pipeline = 4, .sequence_parallel = true}, 8);
  const comm::Wire wire{.name = "slow",
                        .ranks_per_machine = 4,
                        .links = {comm::Link{.bytes_per_second = 512.0, .call_seconds = 0.25},
                                  comm::Link{.bytes_per_second = 128.0, .call_seconds = 0.5}}};
  const parallel::Transfer near{.peer = 0};
  const parallel::Transfer far{.peer = 2};
  const auto seconds = [&](const parallel::Action& action) { return message_seconds(wire, request, 1, action); };
  EXPECT_NEAR(seconds({.sends = {near}}), 1.25, kTiny);
  EXPECT_NEAR(seconds({.sends = {near}, .receives = {near}}), 1.25, kTiny);
  EXPECT_NEAR(seconds({.sends = {far}}), 4.5, kTiny);
  EXPECT_NEAR(seconds({.sends = {near}, .receives = {far}}), 4.5, kTiny);
  const double still = step_of(request, still_wire(), {stage_of(1, 10.0, 20.0)}).pipeline;
  const double moving = step_of(request, wire, {stage_of(1, 10.0, 20.0)}).pipeline;
  // On the way of the first micro batch to the last stage and of the last one back: at least these.
  EXPECT_GT(moving, still + 2 * (1.25 + 4.5 + 1.25) - kTiny);
}

}  // namespace
}  // namespace megalith::plan
