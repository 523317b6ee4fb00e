#include "parallel/schedule/schedule.h"

#include <gtest/gtest.h>

#include "parallel/schedule/data_parallel_actions.h"
#include "parallel/schedule_bounds.h"

namespace megalith::parallel::testing {
namespace {

// "F0.1 B1.0": kind, chunk, micro batch of what is computed.
std::string computes(const Schedule& schedule) {
  std::string text;
  for (const Action& action : schedule) {
    if (!is_compute(action)) continue;
    const char kind = "FBIW"[static_cast<size_t>(action.kind)];
    text += fmt::format("{}{}{}.{}", text.empty() ? "" : " ", kind, action.chunk, action.micro_batch);
  }
  return text;
}

TEST(SingleStageSchedule, EachMicroBatchGoesForwardThenBackward) {
  EXPECT_EQ(computes(single_stage_schedule(2)), "F0.0 B0.0 F0.1 B0.1");
  EXPECT_EQ(computes(single_stage_schedule(1, 3)), "F0.0 F1.0 F2.0 B2.0 B1.0 B0.0");
}

TEST(PipelineSchedules, OneForwardOneBackward) {
  const auto schedules = pipeline_schedules({.pipeline = 2}, 3);
  EXPECT_EQ(computes(schedules[0]), "F0.0 F0.1 B0.0 F0.2 B0.1 B0.2");
  EXPECT_EQ(computes(schedules[1]), "F0.0 B0.0 F0.1 B0.1 F0.2 B0.2");
}

TEST(PipelineSchedules, SendsAndReceivesArePaired) {
  const Schedule last = pipeline_schedules({.pipeline = 2}, 2)[1];
  const Transfer first_input{Payload::activation, 0, 0, 0};
  EXPECT_EQ(last[0], (Action{.kind = ActionKind::send_receive, .receives = {first_input}}));
  // After its first backward the last stage gives a gradient and takes the next activation.
  ASSERT_EQ(last[4].kind, ActionKind::send_receive);
  EXPECT_EQ(last[4].sends, (std::vector<Transfer>{{Payload::gradient, 0, 0, 0}}));
}

TEST(PipelineSchedules, FewTensorsWaitToBeUsed) {
  for (const Layout& layout : {Layout{.pipeline = 4}, Layout{.pipeline = 8, .chunks = 2}}) {
    for (const Schedule& schedule : pipeline_schedules(layout, 32)) {
      EXPECT_GE(receive_buffers(schedule), 1);
      EXPECT_LE(receive_buffers(schedule), 2 * layout.chunks);
    }
  }
  EXPECT_EQ(receive_buffers(single_stage_schedule(4)), 0);
}

TEST(PipelineSchedules, InterleavedFollowsMegatronsOrder) {
  const auto schedules = pipeline_schedules({.pipeline = 2, .chunks = 2}, 4);
  EXPECT_EQ(computes(schedules[0]), "F0.0 F0.1 F1.0 F1.1 F0.2 B1.0 F0.3 B1.1 F1.2 B0.0 F1.3 B0.1 B1.2 B1.3 B0.2 B0.3");
  EXPECT_EQ(computes(schedules[1]), "F0.0 F0.1 F1.0 B1.0 F1.1 B1.1 F0.2 B0.0 F0.3 B0.1 F1.2 B1.2 F1.3 B1.3 B0.2 B0.3");
}

TEST(PipelineSchedules, ZeroBubbleSplitsBackward) {
  const auto schedules = pipeline_schedules({.pipeline = 2, .schedule = PipelineSchedule::zero_bubble}, 3);
  EXPECT_EQ(computes(schedules[0]), "F0.0 F0.1 I0.0 W0.0 F0.2 I0.1 W0.1 I0.2 W0.2");
  EXPECT_EQ(computes(schedules[1]), "F0.0 I0.0 F0.1 I0.1 W0.0 F0.2 I0.2 W0.1 W0.2");
}

TEST(PipelineSchedules, RefusesWhatItHasNoScheduleFor) {
  EXPECT_THROW(pipeline_schedules({.pipeline = 4, .chunks = 2}, 3), Error);
  EXPECT_THROW(pipeline_schedules({.pipeline = 4}, 0), Error);
  EXPECT_THROW(pipeline_schedules({.pipeline = 4, .chunks = 2, .schedule = PipelineSchedule::zero_bubble}, 8), Error);
  EXPECT_THROW(pipeline_schedules({.schedule = PipelineSchedule::zero_bubble}, 8), Error);
}

// "G0 F0.0 R0 S1": gathers, releases, and reductions (S) of buckets among what is computed.
std::string with_traffic(const Schedule& schedule) {
  std::string text;
  for (const Action& action : schedule) {
    if (!text.empty()) text += " ";
    if (is_compute(action)) text += computes({action});
    if (action.kind == ActionKind::gather_weights) text += fmt::format("G{}", action.chunk);
    if (action.kind == ActionKind::release_weights) text += fmt::format("R{}", action.chunk);
    if (action.kind == ActionKind::reduce_bucket) text += fmt::format("S{}", action.bucket);
  }
  return text;
}

TEST(DataParallelActions, ReduceEachBucketBehindTheLastBackwardOfItsChunk) {
  EXPECT_EQ(with_traffic(with_data_parallel(single_stage_schedule(2, 2), WeightLife::run, {1, 1, 0})),
            "F0.0 F1.0 B1.0 B0.0 F0.1 F1.1 B1.1 S0 S1 B0.1 S2");
}

TEST(DataParallelActions, GatherWeightsOneChunkAhead) {
  EXPECT_EQ(with_traffic(with_data_parallel(single_stage_schedule(1, 3), WeightLife::step, {})),
            "G0 G1 F0.0 G2 F1.0 F2.0 B2.0 B1.0 B0.0");
}

TEST(DataParallelActions, ShardedWeightsAreHeldForTwoChunksAtMost) {
  const std::string text = with_traffic(with_data_parallel(single_stage_schedule(1, 3), WeightLife::use, {2, 1, 0}));
  EXPECT_EQ(text, "G0 G1 F0.0 R0 G2 F1.0 F2.0 B2.0 S0 R2 G0 B1.0 S1 R1 B0.0 S2 R0");
}

}  // namespace
}  // namespace megalith::parallel::testing
