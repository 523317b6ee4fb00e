#include "plan/simulate.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "parallel/recipe_layouts.h"
#include "parallel/schedule/data_parallel_actions.h"
#include "parallel/schedule_bounds.h"

namespace megalith::plan::testing {

using namespace parallel;
using namespace parallel::testing;
namespace {

constexpr double kRounding = 1e-9;

// Forward and each half of backward take as long; transfers take none.
double equal_halves(int64_t /*stage*/, const Action& action) {
  if (!is_compute(action)) return 0.0;
  return action.kind == ActionKind::backward ? 2.0 : 1.0;
}

double equal(int64_t /*stage*/, const Action& action) {
  return is_compute(action) ? 1.0 : 0.0;
}

std::string label(const Layout& layout, int64_t micro_batches) {
  return fmt::format("{}, {} micro batches", to_string(layout), micro_batches);
}

int64_t& count_of(std::vector<int64_t>& counts, const Action& action) {
  return counts[static_cast<size_t>(action.chunk)];
}

// Each chunk takes the micro batches in order, forward before backward, input before weight, and leaves none out.
void expect_complete(const Schedule& schedule, int64_t chunks, int64_t micro_batches) {
  std::vector<int64_t> forward(static_cast<size_t>(chunks));
  std::vector<int64_t> input = forward;
  std::vector<int64_t> finished = forward;
  for (const Action& action : schedule) {
    if (!is_compute(action)) continue;
    if (action.kind == ActionKind::forward) {
      ASSERT_EQ(count_of(forward, action)++, action.micro_batch);
    } else if (action.kind == ActionKind::backward_weight) {
      ASSERT_EQ(count_of(finished, action)++, action.micro_batch);
      ASSERT_LE(count_of(finished, action), count_of(input, action));
    } else {
      ASSERT_EQ(count_of(input, action)++, action.micro_batch);
      ASSERT_LE(count_of(input, action), count_of(forward, action));
      if (action.kind == ActionKind::backward) ++count_of(finished, action);
    }
  }
  const std::vector<int64_t> all(static_cast<size_t>(chunks), micro_batches);
  ASSERT_EQ(forward, all);
  ASSERT_EQ(input, all);
  ASSERT_EQ(finished, all);
}

// Communicators take one message each way between two ranks in one call.
void expect_one_message_each_way(const Schedule& schedule) {
  for (const Action& action : schedule) {
    ASSERT_LE(action.sends.size(), 1U);
    ASSERT_LE(action.receives.size(), 2U);
    ASSERT_TRUE(action.receives.size() < 2 || action.receives[0].peer != action.receives[1].peer);
  }
}

void expect_memory_as_planned(const Simulation& simulation, const Layout& layout, int64_t micro_batches) {
  const bool exact = layout.chunks == 1 || micro_batches % layout.pipeline == 0;
  for (int64_t stage = 0; stage < layout.pipeline; ++stage) {
    const StageTimeline& timeline = simulation.stages[static_cast<size_t>(stage)];
    const int64_t planned = chunks_alive(layout, stage, micro_batches);
    ASSERT_LE(timeline.alive, planned);
    if (exact) {
      ASSERT_EQ(timeline.alive, planned);
    }
  }
}

double bubble_formula(const Layout& layout, int64_t micro_batches) {
  const auto stages_before = static_cast<double>(layout.pipeline - 1);
  return stages_before / (static_cast<double>(layout.chunks * micro_batches) + stages_before);
}

// Interleaving with a last group that is not full idles more.
void expect_bubble_of_formula(const Simulation& simulation, const Layout& layout, int64_t micro_batches) {
  if (layout.schedule == PipelineSchedule::zero_bubble) return;
  const double formula = bubble_formula(layout, micro_batches);
  ASSERT_GE(simulation.bubble_fraction(), formula - kRounding);
  if (layout.chunks > 1 && micro_batches % layout.pipeline != 0) return;
  ASSERT_LE(simulation.bubble_fraction(), formula + kRounding);
}

void expect_good(const Layout& layout, int64_t micro_batches) {
  SCOPED_TRACE(label(layout, micro_batches));
  const std::vector<Schedule> schedules = pipeline_schedules(layout, micro_batches);
  for (const Schedule& schedule : schedules) {
    expect_complete(schedule, layout.chunks, micro_batches);
    expect_one_message_each_way(schedule);
  }
  for (const DurationOf& duration : {DurationOf(equal), DurationOf(equal_halves)}) {
    const Simulation simulation = simulate(schedules, {.duration = duration});
    expect_memory_as_planned(simulation, layout, micro_batches);
    expect_bubble_of_formula(simulation, layout, micro_batches);
  }
}

// All of them with MEGALITH_LONG_TESTS set; otherwise those beside the places where something changes.
bool is_tested(const Layout& layout, int64_t micro_batches) {
  if (std::getenv("MEGALITH_LONG_TESTS") != nullptr) return true;
  const int64_t over = (micro_batches + 1) % layout.pipeline;
  return layout.chunks <= 4 && (over <= 2 || micro_batches == 64);
}

TEST(Simulate, EveryScheduleUpTo16StagesIsGood) {
  for (int64_t pipeline = 1; pipeline <= 16; ++pipeline) {
    for (int64_t chunks = 1; chunks <= 12; ++chunks) {
      for (int64_t micro_batches = 1; micro_batches <= 64; ++micro_batches) {
        const Layout layout{.pipeline = pipeline, .chunks = chunks};
        if (!schedule_problem(layout, micro_batches).empty() || !is_tested(layout, micro_batches)) continue;
        expect_good(layout, micro_batches);
        if (HasFatalFailure()) return;
      }
    }
  }
}

// Interleaving needs a micro batch for every stage; backward is split in halves only where that can fill a gap.
bool is_accepted(const Layout& layout, int64_t micro_batches) {
  if (layout.schedule == PipelineSchedule::zero_bubble) return layout.pipeline > 1 && layout.chunks == 1;
  return layout.pipeline == 1 || layout.chunks == 1 || micro_batches >= layout.pipeline;
}

TEST(Simulate, WhatHasNoScheduleIsRefusedWithTheReason) {
  for (int64_t pipeline = 1; pipeline <= 16; ++pipeline) {
    for (int64_t chunks = 1; chunks <= 12; ++chunks) {
      for (int64_t micro_batches = 1; micro_batches <= 64; ++micro_batches) {
        for (const PipelineSchedule kind :
             {PipelineSchedule::one_forward_one_backward, PipelineSchedule::zero_bubble}) {
          const Layout layout{.pipeline = pipeline, .chunks = chunks, .schedule = kind};
          const std::string reason = schedule_problem(layout, micro_batches);
          ASSERT_EQ(reason.empty(), is_accepted(layout, micro_batches)) << label(layout, micro_batches);
          if (reason.empty()) continue;
          try {
            pipeline_schedules(layout, micro_batches);
            FAIL() << label(layout, micro_batches);
          } catch (const Error& error) {
            ASSERT_NE(std::string(error.what()).find(reason), std::string::npos) << error.what();
          }
        }
      }
    }
  }
}

// Forward alone: a stage computes without a pause once it has begun, where the micro batches fill the pipeline.
TEST(Simulate, EvaluationFillsThePipeline) {
  for (int64_t pipeline = 1; pipeline <= 16; ++pipeline) {
    for (int64_t chunks = 1; chunks <= 12; ++chunks) {
      for (const int64_t micro_batches : {int64_t{1}, pipeline - 1, pipeline, pipeline + 1, int64_t{32}}) {
        if (micro_batches == 0) continue;
        const Layout layout{.pipeline = pipeline, .chunks = chunks};
        const std::vector<Schedule> schedules = evaluation_schedules(layout, micro_batches);
        const Simulation simulation = simulate(schedules, {.duration = equal});
        for (const StageTimeline& stage : simulation.stages)
          ASSERT_EQ(stage.busy, static_cast<double>(chunks * micro_batches)) << label(layout, micro_batches);
        if (micro_batches % pipeline != 0 && chunks > 1) continue;
        ASSERT_NEAR(simulation.bubble_fraction(), bubble_formula(layout, micro_batches), kRounding)
            << label(layout, micro_batches);
      }
    }
  }
}

TEST(Simulate, RecipesSchedulesAreGood) {
  for (const RecipeLayout& recipe : recipe_layouts()) expect_good(recipe.layout, recipe.micro_batches);
}

TEST(Simulate, ZeroBubbleIdlesLessThanOneForwardOneBackward) {
  for (int64_t pipeline = 2; pipeline <= 16; ++pipeline) {
    for (int64_t micro_batches = 1; micro_batches <= 64; ++micro_batches) {
      const Layout plain{.pipeline = pipeline};
      const Layout split{.pipeline = pipeline, .schedule = PipelineSchedule::zero_bubble};
      expect_good(split, micro_batches);
      const SimulationOptions options{.duration = equal_halves};
      const Simulation with_bubble = simulate(pipeline_schedules(plain, micro_batches), options);
      const Simulation without = simulate(pipeline_schedules(split, micro_batches), options);
      ASSERT_LT(without.bubble_fraction(), with_bubble.bubble_fraction()) << label(split, micro_batches);
      for (const StageTimeline& stage : without.stages) ASSERT_LE(stage.alive, with_bubble.stages.front().alive);
      if (HasFatalFailure()) return;
      // (p - 1) (F + I - W) instead of (p - 1) (F + I + W) on each stage.
      if (micro_batches < pipeline) continue;
      ASSERT_NEAR(without.duration, static_cast<double>(3 * micro_batches + pipeline - 1), kRounding)
          << label(split, micro_batches);
    }
  }
}

// Ranks that cannot overlap transfers with compute, and durations that fit no grid, end all the same.
TEST(Simulate, NoOrderOfEventsMakesRanksWaitInACircle) {
  const auto uneven = [](int64_t stage, const Action& action) {
    return static_cast<double>((stage * 7 + action.chunk * 5 + action.micro_batch * 3) % 11) + 0.5;
  };
  for (const Layout& layout :
       {Layout{.pipeline = 2}, Layout{.pipeline = 2, .chunks = 3}, Layout{.pipeline = 3, .chunks = 2},
        Layout{.pipeline = 7}, Layout{.pipeline = 8, .chunks = 4},
        Layout{.pipeline = 5, .schedule = PipelineSchedule::zero_bubble}}) {
    for (const int64_t micro_batches : {8, 9, 16}) {
      const std::vector<Schedule> schedules = pipeline_schedules(layout, micro_batches);
      const double overlapped = simulate(schedules, {.duration = uneven}).duration;
      const double blocking = simulate(schedules, {.duration = uneven, .transfers_block = true}).duration;
      EXPECT_LE(overlapped, blocking + kRounding) << label(layout, micro_batches);
    }
  }
}

// Where each stage has one chunk even ranks that do not overlap keep pace.
TEST(Simulate, PlainPipelinesLoseNothingByWaitingForTransfers) {
  const Layout layout{.pipeline = 4};
  const Simulation simulation =
      simulate(pipeline_schedules(layout, 12), {.duration = equal_halves, .transfers_block = true});
  EXPECT_NEAR(simulation.bubble_fraction(), bubble_formula(layout, 12), kRounding);
}

TEST(Simulate, CountsWhatIsHeld) {
  const Simulation simulation = simulate(pipeline_schedules({.pipeline = 2, .chunks = 2}, 4), {.duration = equal});
  EXPECT_EQ(simulation.stages[0].chunk_alive, (std::vector<int64_t>{4, 2}));
  EXPECT_EQ(simulation.stages[0].alive, 5);
}

TEST(Simulate, GathersDelayTheirChunkAndReductionsEndTheStep) {
  const Schedule schedule = with_data_parallel(single_stage_schedule(1, 2), WeightLife::step, {1, 0});
  const auto duration = [](int64_t, const Action& action) { return is_compute(action) ? 1.0 : 3.0; };
  // Gathers end at 3 and 6, compute of chunk 0 runs from 3, of chunk 1 from 6; the last backward ends at 9.
  const Simulation simulation = simulate({schedule}, {.duration = duration});
  EXPECT_EQ(simulation.duration, 14.0);
  EXPECT_EQ(simulation.stages[0].busy, 4.0);
}

TEST(Simulate, FindsWhatIsWrong) {
  const SimulationOptions options{.duration = equal};
  std::vector<Schedule> lost = pipeline_schedules({.pipeline = 2}, 2);
  std::erase_if(lost[1],
                [](const Action& action) { return action.kind == ActionKind::send_receive && action.sends.empty(); });
  EXPECT_THROW(simulate(lost, options), Error);

  std::vector<Schedule> swapped = pipeline_schedules({.pipeline = 2}, 2);
  std::swap(swapped[0][0], swapped[0][2]);  // the two forwards of the first stage change places
  EXPECT_NO_THROW(simulate(swapped, options));
  std::swap(swapped[0][1].sends, swapped[0][3].sends);  // and so do what they send
  EXPECT_THROW(simulate(swapped, options), Error);

  EXPECT_THROW(simulate({{{.kind = ActionKind::backward}}}, options), Error);
}

TEST(Simulate, FindsCircles) {
  const auto exchange = [](std::vector<Transfer> sends, std::vector<Transfer> receives) {
    return Action{.kind = ActionKind::send_receive, .sends = std::move(sends), .receives = std::move(receives)};
  };
  const Action forward{.kind = ActionKind::forward};
  const Action backward{.kind = ActionKind::backward};
  // The first stage waits for a gradient before it sends what the gradient is made from.
  const Schedule first = {forward, exchange({}, {{Payload::gradient, 1, 0, 0}}),
                          exchange({{Payload::activation, 1, 0, 0}}, {}), backward};
  const Schedule second = {exchange({}, {{Payload::activation, 0, 0, 0}}), forward, backward,
                           exchange({{Payload::gradient, 0, 0, 0}}, {})};
  EXPECT_THROW(simulate({first, second}, {.duration = equal}), Error);
}

TEST(ChunksAlive, FollowsOneForwardOneBackward) {
  const Layout plain{.pipeline = 8};
  EXPECT_EQ(chunks_alive(plain, 0, 64), 8);
  EXPECT_EQ(chunks_alive(plain, 7, 64), 1);
  EXPECT_EQ(chunks_alive(plain, 0, 4), 4);
  // Megatron's interleaving holds (1 + (pp - 1) / (pp * vp)) times as much on the first stage, in half as large chunks.
  const Layout interleaved{.pipeline = 8, .chunks = 2};
  EXPECT_EQ(chunks_alive(interleaved, 0, 64), 23);
  // ZB-H1 holds on every stage what 1F1B holds on the first.
  const Layout zero_bubble{.pipeline = 8, .schedule = PipelineSchedule::zero_bubble};
  EXPECT_EQ(chunks_alive(zero_bubble, 7, 64), 8);
}

}  // namespace
}  // namespace megalith::plan::testing
