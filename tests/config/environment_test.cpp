#include "config/environment.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <map>
#include <string>

#include "core/error.h"

namespace megalith::config {
namespace {

using Variables = std::map<std::string, std::string>;

class EnvironmentTest : public testing::Test {
 protected:
  void SetUp() override { clear(); }
  void TearDown() override { clear(); }

  static void clear() {
    for (const char* name :
         {"SLURM_ARRAY_TASK_ID", "SLURM_ARRAY_TASK_COUNT", "SLURM_ARRAY_TASK_MIN", "SLURM_ARRAY_TASK_STEP",
          "SLURM_PROCID", "SLURM_NTASKS", "SLURM_JOB_ID", "SLURM_STEP_ID"}) {
      ::unsetenv(name);
    }
  }

  static std::optional<Worker> worker_under(const Variables& variables) {
    clear();
    for (const auto& [name, value] : variables) ::setenv(name.c_str(), value.c_str(), 1);
    return worker_from_environment();
  }
};

TEST_F(EnvironmentTest, OutsideOfSlurmThereIsNoWorker) {
  EXPECT_EQ(worker_under({}), std::nullopt);
  EXPECT_EQ(worker_under({{"SLURM_PROCID", "1"}}), std::nullopt);
  EXPECT_EQ(worker_under({{"SLURM_ARRAY_TASK_ID", ""}, {"SLURM_ARRAY_TASK_COUNT", ""}}), std::nullopt);
}

TEST_F(EnvironmentTest, ATaskOfAStep) {
  EXPECT_EQ(worker_under({{"SLURM_PROCID", "1"}, {"SLURM_NTASKS", "3"}}), (Worker{1, 3}));
  EXPECT_EQ(worker_under({{"SLURM_PROCID", "1"}, {"SLURM_NTASKS", "3"}, {"SLURM_JOB_ID", "9"}, {"SLURM_STEP_ID", "0"}}),
            (Worker{1, 3}));
}

TEST_F(EnvironmentTest, ABatchScriptWithoutSrunIsOneProcess) {
  EXPECT_EQ(worker_under({{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "8"}, {"SLURM_JOB_ID", "9"}}), (Worker{0, 1}));
}

TEST_F(EnvironmentTest, ATaskOfAnArray) {
  EXPECT_EQ(worker_under({{"SLURM_ARRAY_TASK_ID", "2"}, {"SLURM_ARRAY_TASK_COUNT", "4"}}), (Worker{2, 4}));
  const Variables stepped{{"SLURM_ARRAY_TASK_ID", "7"},
                          {"SLURM_ARRAY_TASK_COUNT", "4"},
                          {"SLURM_ARRAY_TASK_MIN", "1"},
                          {"SLURM_ARRAY_TASK_STEP", "2"}};
  EXPECT_EQ(worker_under(stepped), (Worker{3, 4}));
}

TEST_F(EnvironmentTest, AnArrayOfSteps) {
  const Variables both{
      {"SLURM_ARRAY_TASK_ID", "2"}, {"SLURM_ARRAY_TASK_COUNT", "4"}, {"SLURM_PROCID", "1"}, {"SLURM_NTASKS", "3"}};
  EXPECT_EQ(worker_under(both), (Worker{7, 12}));
}

TEST_F(EnvironmentTest, RefusesNonsense) {
  for (const Variables& variables : {Variables{{"SLURM_PROCID", "x"}, {"SLURM_NTASKS", "3"}},
                                     Variables{{"SLURM_PROCID", "3"}, {"SLURM_NTASKS", "3"}},
                                     Variables{{"SLURM_ARRAY_TASK_ID", "4"}, {"SLURM_ARRAY_TASK_COUNT", "4"}}}) {
    EXPECT_THROW(worker_under(variables), Error);
  }
}

}  // namespace
}  // namespace megalith::config
