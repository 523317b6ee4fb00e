#include "config/environment/environment.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <map>
#include <string>

#include "core/error.h"
#include "expect_error.h"

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

std::optional<RankEnvironment> rank_under(const Variables& variables) {
  return rank_environment([&](const std::string& name) -> std::optional<std::string> {
    const auto found = variables.find(name);
    if (found == variables.end()) return std::nullopt;
    return found->second;
  });
}

TEST(RankEnvironment, OneRankAloneHasNone) {
  EXPECT_EQ(rank_under({}), std::nullopt);
  EXPECT_EQ(rank_under({{"RANK", ""}, {"WORLD_SIZE", ""}}), std::nullopt);
  EXPECT_EQ(rank_under({{"MASTER_ADDR", "node1"}}), std::nullopt);
  // A pod of an indexed job that does something else, and a batch script without srun.
  EXPECT_EQ(rank_under({{"JOB_COMPLETION_INDEX", "3"}}), std::nullopt);
  EXPECT_EQ(rank_under({{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "8"}, {"SLURM_JOB_ID", "9"}}), std::nullopt);
}

TEST(RankEnvironment, Torchrun) {
  EXPECT_EQ(
      rank_under(
          {{"RANK", "5"}, {"LOCAL_RANK", "1"}, {"WORLD_SIZE", "8"}, {"MASTER_ADDR", "node1"}, {"MASTER_PORT", "1234"}}),
      (RankEnvironment{5, 1, 8, "node1", 1234, "torchrun"}));
  EXPECT_EQ(rank_under({{"RANK", "0"}, {"WORLD_SIZE", "1"}}),
            (RankEnvironment{0, 0, 1, "127.0.0.1", 29500, "torchrun"}));
  EXPECT_EQ(rank_under({{"RANK", "0"}, {"WORLD_SIZE", "2"}, {"TORCHELASTIC_USE_AGENT_STORE", "True"}})->master_port,
            29501)
      << "torchrun itself listens at MASTER_PORT";
}

TEST(RankEnvironment, Slurm) {
  const Variables task{{"SLURM_PROCID", "9"},  {"SLURM_LOCALID", "1"}, {"SLURM_NTASKS", "16"},
                       {"SLURM_JOB_ID", "44"}, {"SLURM_STEP_ID", "0"}, {"SLURM_JOB_NODELIST", "gpu[03-04,9]"}};
  EXPECT_EQ(rank_under(task), (RankEnvironment{9, 1, 16, "gpu03", 29500, "Slurm"}));
  Variables launched = task;
  launched["SLURM_LAUNCH_NODE_IPADDR"] = "10.0.0.3";
  EXPECT_EQ(rank_under(launched)->master_address, "10.0.0.3");
  launched["MASTER_ADDR"] = "head";
  launched["MASTER_PORT"] = "7000";
  EXPECT_EQ(rank_under(launched)->master_address, "head");
  EXPECT_EQ(rank_under(launched)->master_port, 7000);
}

TEST(RankEnvironment, KubernetesIndexedJob) {
  EXPECT_EQ(rank_under({{"JOB_COMPLETION_INDEX", "2"}, {"NNODES", "4"}, {"MASTER_ADDR", "job-0.svc"}}),
            (RankEnvironment{2, 0, 4, "job-0.svc", 29500, "Kubernetes"}));
  EXPECT_EQ(rank_under({{"JOB_COMPLETION_INDEX", "1"},
                        {"NNODES", "2"},
                        {"NPROC", "8"},
                        {"LOCAL_RANK", "3"},
                        {"MASTER_ADDR", "job-0.svc"}}),
            (RankEnvironment{11, 3, 16, "job-0.svc", 29500, "Kubernetes"}));
}

TEST(RankEnvironment, TorchrunComesFirst) {
  const Variables both{{"RANK", "1"},   {"WORLD_SIZE", "2"},   {"JOB_COMPLETION_INDEX", "0"},
                       {"NNODES", "1"}, {"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "1"}};
  EXPECT_EQ(rank_under(both)->launcher, "torchrun");
}

TEST(RankEnvironment, RefusesNonsenseByName) {
  struct Case {
    Variables variables;
    std::vector<std::string> parts;
  };
  const std::vector<Case> cases = {
      {{{"RANK", "1"}}, {"WORLD_SIZE", "is not"}},
      {{{"WORLD_SIZE", "2"}}, {"RANK", "is not"}},
      {{{"RANK", "2"}, {"WORLD_SIZE", "2"}}, {"RANK is 2", "WORLD_SIZE"}},
      {{{"RANK", "-1"}, {"WORLD_SIZE", "2"}}, {"RANK is '-1'"}},
      {{{"RANK", "one"}, {"WORLD_SIZE", "2"}}, {"RANK is 'one'"}},
      {{{"RANK", "0"}, {"WORLD_SIZE", "0"}}, {"WORLD_SIZE is '0'"}},
      {{{"RANK", "0"}, {"WORLD_SIZE", "99999999999999999999"}}, {"WORLD_SIZE is '9"}},
      {{{"RANK", "0"}, {"WORLD_SIZE", "2"}, {"LOCAL_RANK", "2"}}, {"LOCAL_RANK is 2"}},
      {{{"RANK", "0"}, {"WORLD_SIZE", "2"}, {"MASTER_PORT", "65536"}}, {"MASTER_PORT is '65536'"}},
      {{{"SLURM_PROCID", "3"}}, {"SLURM_NTASKS"}},
      {{{"SLURM_PROCID", "3"}, {"SLURM_NTASKS", "3"}}, {"SLURM_PROCID is 3"}},
      {{{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "3"}, {"SLURM_JOB_NODELIST", "n["}}, {"'n['", "SLURM_JOB_NODELIST"}},
      {{{"JOB_COMPLETION_INDEX", "0"}, {"NNODES", "2"}}, {"MASTER_ADDR"}},
      {{{"JOB_COMPLETION_INDEX", "2"}, {"NNODES", "2"}}, {"JOB_COMPLETION_INDEX is 2"}},
      {{{"JOB_COMPLETION_INDEX", "0"}, {"NNODES", "1"}, {"NPROC", "2"}, {"LOCAL_RANK", "2"}}, {"LOCAL_RANK", "NPROC"}},
  };
  for (const Case& each : cases) expect_parts(user_error_of([&] { rank_under(each.variables); }), each.parts);
}

TEST(NodeList, NamesAndRanges) {
  using Nodes = std::vector<std::string>;
  EXPECT_EQ(expand_node_list("login"), (Nodes{"login"}));
  EXPECT_EQ(expand_node_list("node[001-003,7],login"), (Nodes{"node001", "node002", "node003", "node7", "login"}));
  EXPECT_EQ(expand_node_list("a[8-11]b,c-d[09-10]"), (Nodes{"a8b", "a9b", "a10b", "a11b", "c-d09", "c-d10"}));
}

TEST(NodeList, RefusesWhatIsNone) {
  for (const char* text : {"", ",", "a,", "n[", "n[]", "n[1", "n[1-]", "n[2-1]", "n[x]", "n]", "n[1]]", "n[1][2]",
                           "n[0-999999999]", "n[1-2-3]", "n[-1]"}) {
    EXPECT_NE(user_error_of([&] { expand_node_list(text); }), "") << text;
  }
}

}  // namespace
}  // namespace megalith::config
