#include "plan/check_run.h"

#include <gtest/gtest.h>

#include "core/metric_names.h"
#include "expect_error.h"
#include "plan/search/planned_runs.h"

namespace megalith::plan {
namespace {

TEST(CheckRun, PredictedBesideWhatWasLogged) {
  const PlannedLayout layout =
      plan_as_is(megalith::testing::planned_recipe("gpt3-1.3b", 8, "h200", {"trainer.devices=8"}));
  const MemoryTable memory{.rows = {{.arena = "weights", .bytes = 3 << 20}, {.arena = "gradients", .bytes = 1}}};
  observe::RunHistory run;
  expect_error(ErrorKind::user, {"no step times"}, [&] { compare_with_run(layout, 0.5, memory, run); });
  // The first steps, five times as slow, do not count.
  for (int64_t step = 0; step < 40; ++step)
    run.curves[metric::kStepTime].set(step, layout.seconds() * (step < 5 ? 5.0 : 0.8));
  // Rank 0's, whatever the worst rank of the layout takes.
  run.memory["weights"] = 3 << 20;
  const std::string text = compare_with_run(layout, 0.5, memory, run);
  expect_parts(text, {"+25.0", "not logged", "weights", "+0.0"});
}

TEST(CheckRun, MemoryAlone) {
  const MemoryTable memory{.rows = {{.arena = "weights", .bytes = 3 << 20}, {.arena = "moments", .bytes = 2 << 20}}};
  observe::RunHistory run;
  expect_error(ErrorKind::user, {"do not say how much memory"}, [&] { compare_memory(memory, run); });
  run.memory["moments"] = 4 << 20;
  const std::string text = compare_memory(memory, run);
  expect_parts(text, {"moments", "2.0 MiB", "4.0 MiB", "-50.0"});
  EXPECT_EQ(text.find("weights"), std::string::npos);
}

}  // namespace
}  // namespace megalith::plan
