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
  observe::RunHistory run;
  expect_error(ErrorKind::user, {"no step times"}, [&] { compare_with_run(layout, 0.5, run); });
  // The first steps, five times as slow, do not count.
  for (int64_t step = 0; step < 40; ++step)
    run.curves[metric::kStepTime].set(step, layout.seconds() * (step < 5 ? 5.0 : 0.8));
  run.memory["weights"] = static_cast<double>(layout.memory.bytes_of("weights"));
  const std::string text = compare_with_run(layout, 0.5, run);
  expect_parts(text, {"+25.0", "not logged", "weights", "+0.0"});
}

}  // namespace
}  // namespace megalith::plan
