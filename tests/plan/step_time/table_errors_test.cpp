#include "plan/step_time/table_errors.h"

#include <gtest/gtest.h>

#include <iostream>

#include "golden_data.h"
#include "plan/step_time/csv.h"
#include "plan/step_time/some_runs.h"

namespace megalith::plan {
namespace {

TableRun measured(const std::string& id, double seconds) {
  return {.id = id,
          .features = testing::some_run(),
          .tier = std::string("B"),
          .sweep = std::string("sweep"),
          .measured_step_s = seconds};
}

Prediction predicted(double seconds) {
  return {.problem = {}, .parts = {.compute = seconds}};
}

TEST(TableErrors, ByHand) {
  const std::vector<TableRun> runs{measured("a", 10), measured("b", 20), measured("c", 40), measured("d", 16)};
  const TableErrors errors = compare(runs, {predicted(11), predicted(18), predicted(40), predicted(10)});
  const TableError* tier = errors.find("tier B");
  ASSERT_NE(tier, nullptr);
  EXPECT_EQ(tier->runs, 4U);
  EXPECT_NEAR(tier->mape, (0.1 + 0.1 + 0 + 0.375) / 4, 1e-12);
  EXPECT_NEAR(tier->median, 0.1, 1e-12);
  EXPECT_NEAR(tier->bias, (0.1 - 0.1 + 0 - 0.375) / 4, 1e-12);
  EXPECT_EQ(tier->worst_id, "d");
  ASSERT_EQ(errors.sweeps.size(), 1U);
  EXPECT_NEAR(errors.sweeps[0].regret, 0.6, 1e-12);  // d is chosen, and a is the best
  EXPECT_NEAR(errors.sweeps[0].top3_regret, 0.0, 1e-12);
  EXPECT_NEAR(errors.sweeps[0].tau, 4.0 / 6, 1e-12);  // one pair of six the wrong way round
}

TEST(TableErrors, RunsWithoutATimeDoNotCount) {
  std::vector<TableRun> runs{measured("a", 10)};
  runs[0].measured_step_s.reset();
  EXPECT_EQ(describe(compare(runs, {predicted(1)})), "no run of the table has a measured time to compare with\n");
}

// What is committed reaches 2.54 and 4.45 %, 2.30 % and 0.684.
TEST(TableErrors, OfPublishedRuns) {
  MEGALITH_GOLDEN_OR_SKIP(golden);
  const std::vector<TableRun> runs =
      read_run_table(golden / "plan" / "published-runs-calibration.csv", cost::Hardware());
  const std::vector<Prediction> predictions = predict(runs, fitted_constants());
  for (const Prediction& prediction : predictions) EXPECT_EQ(prediction.problem, "");
  const TableErrors errors = compare(runs, predictions);
  std::cout << describe(errors);
  EXPECT_LE(errors.find("tier A")->mape, 0.0254 + 0.003);
  EXPECT_LE(errors.find("tier B")->mape, 0.0445 + 0.003);
  EXPECT_LE(errors.mean_regret, 0.0230 + 0.003);
  EXPECT_GE(errors.mean_tau, 0.68);
}

TEST(TableErrors, PartsOfPublishedRunsAddUp) {
  MEGALITH_GOLDEN_OR_SKIP(golden);
  const std::vector<TableRun> runs =
      read_run_table(golden / "plan" / "published-runs-calibration.csv", cost::Hardware());
  const Csv csv = parse_csv(predictions_csv(runs, predict(runs, fitted_constants())), "predictions.csv");
  ASSERT_EQ(csv.records.size(), runs.size());
  for (const Csv::Record& record : csv.records) {
    double sum = 0.0;
    for (size_t i = 7; i < 18; ++i) sum += std::stod(record.cells[i]);
    EXPECT_NEAR(sum / std::stod(record.cells[3]), 1.0, 1e-6) << record.cells[0];
  }
}

}  // namespace
}  // namespace megalith::plan
