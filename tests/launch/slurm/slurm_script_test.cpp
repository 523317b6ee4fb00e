#include "launch/slurm/slurm_script.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>

#include "core/clock.h"
#include "core/file.h"
#include "expect_error.h"
#include "launch/profiles/profile_reader.h"
#include "launch/slurm/slurm_cluster.h"
#include "launch/slurm/slurm_options.h"
#include "launch/slurm/slurm_stages.h"
#include "launch/slurm/slurm_time.h"
#include "launch/tool.h"
#include "repository.h"

namespace megalith::launch {
namespace {

Launch training(const std::string& profile, const std::vector<std::string>& set = {}) {
  Launch launch;
  launch.name = "gpt";
  launch.verb = {"train"};
  launch.arguments = {"-c", "/shared/runs/gpt/launch/gpt/gpt.yaml", "model.data.data_prefix=[.5,/data/it's a]",
                      "exp_manager.explicit_log_dir=/shared/runs/gpt", "exp_manager.resume_if_exists=true"};
  std::vector<std::string> all = {"program=/opt/megalith/bin/megalith", "slurm.time=4:00:00"};
  all.insert(all.end(), set.begin(), set.end());
  launch.profile = load_profile(profile, all, {in_repository("recipes/clusters")});
  launch.nodes = 2;
  launch.ranks_per_node = 8;
  launch.run_directory = "/shared/runs/gpt";
  launch.folder = "/shared/runs/gpt/launch/gpt";
  launch.folder_in_job = "/shared/runs/gpt/launch/gpt";
  launch.work_directory = "/shared";
  launch.tracker = "/shared/runs/gpt/checkpoints/latest_checkpointed_iteration.txt";
  launch.saves = true;
  launch.patience = 660;
  return launch;
}

Launch two_stages(const std::string& profile) {
  Launch launch = training(profile);
  launch.verb = {"data"};
  launch.work = Work::workers;
  launch.stages = {{.name = "tokenize",
                    .verb = {"data", "tokenize"},
                    .arguments = {"--input", "raw/*.jsonl", "--output-dir", "tokens"},
                    .tasks = 8,
                    .at_once = 2,
                    .workers = 4},
                   {.name = "merge",
                    .verb = {"data", "merge"},
                    .arguments = {"--input", "tokens/*_document", "--output-prefix", "all"}}};
  launch.saves = false;
  launch.tracker.clear();
  return launch;
}

// MEGALITH_UPDATE_GOLDEN=1 writes the file anew, for a person to read the difference.
void expect_golden(const std::string& name, const std::string& text) {
  const std::filesystem::path file = in_repository("tests/launch/golden/" + name);
  if (std::getenv("MEGALITH_UPDATE_GOLDEN") != nullptr) replace_file(file, text);
  EXPECT_EQ(text, read_text(file)) << name;
  EXPECT_TRUE(run_tool({.command = {"bash", "-n"}, .input = text}).good()) << name;
}

TEST(SlurmScript, IsAsItWas) {
  expect_golden("slurm.sh", slurm_script(training("generic-slurm")));
  Launch chain = training("generic-slurm", {"slurm.partition=gpu"});
  chain.chain = 3;
  expect_golden("slurm-chain.sh", slurm_script(chain));
  expect_golden("slurm-dgx-cloud.sh",
                slurm_script(training("dgx-cloud", {"image=/shared/megalith.sqsh", "mounts[0].source=/shared",
                                                    "slurm.account=me", "source[0]=/etc/nccl.sh"})));
  expect_golden("slurm-data.sh", slurm_script(two_stages("azure-ndv5")));
}

TEST(SlurmScript, StagesDifferInTheOptionsOfSbatch) {
  const Launch launch = two_stages("generic-slurm");
  const auto options = [&](size_t stage, const std::vector<std::string>& after) {
    return stage_options(launch, launch.stages[stage], after);
  };
  EXPECT_EQ(options(0, {}),
            (std::vector<std::string>{"--job-name=gpt.tokenize", "--ntasks-per-node=4", "--array=0-7%2"}));
  EXPECT_EQ(options(1, {"12", "13"}),
            (std::vector<std::string>{"--job-name=gpt.merge", "--ntasks-per-node=1", "--array=0-0",
                                      "--dependency=afterok:12:13", "--kill-on-invalid-dep=yes"}));
  // The tasks of an array have one name: they would wait for each other.
  EXPECT_EQ(slurm_script(two_stages("dgx-cloud")).find("singleton"), std::string::npos);
}

TEST(SlurmScript, AColonAloneIsHiddenFromSrun) {
  Launch launch = training("generic-slurm");
  launch.arguments = {"a", ":", "b c"};
  const std::string text = slurm_script(launch);
  EXPECT_NE(text.find("exec /opt/megalith/bin/megalith train a : '\\''b c'\\'' --nproc 8 \"$@\"' \\\n  bash"),
            std::string::npos)
      << text;
}

TEST(SlurmScript, TheSameLaunchGivesTheSameBytes) {
  EXPECT_EQ(slurm_script(training("dgx-cloud")), slurm_script(training("dgx-cloud")));
}

TEST(SlurmScript, AThousandNodesTakeNoTime) {
  Launch launch = training("generic-slurm");
  launch.nodes = 1000;
  const double begin = monotonic_seconds();
  EXPECT_NE(slurm_script(launch).find("--nodes=1000"), std::string::npos);
  EXPECT_LT(monotonic_seconds() - begin, 1.0);
}

TEST(SlurmScript, SaysWhatItCannotCarry) {
  EXPECT_TRUE(slurm_script_problems(training("generic-slurm")).empty());
  const auto problem = [](const std::vector<std::string>& set) {
    const std::vector<std::string> problems = slurm_script_problems(training("generic-slurm", set));
    EXPECT_EQ(problems.size(), 1U);
    return problems.empty() ? "" : problems.front();
  };
  expect_parts(problem({"slurm.partition=a\nb"}), {"#SBATCH", "line end"});
  expect_parts(problem({"slurm.account=" + std::string(2000, 'x')}), {"more than 1000 bytes"});
  expect_parts(problem({"slurm.time=soon"}), {"'soon'", "1-12:30:00"});
  expect_parts(problem({"slurm.time=5"}), {"time limit 5", "300 s", "save_margin"});
  expect_parts(problem({"slurm.sbatch[0]=nice"}), {"'nice' is not an option"});
  expect_parts(problem({"mounts[0].source=/a:b"}), {"pyxis"});
}

TEST(SlurmScript, OptionsAreQuotedAsSbatchReadsThem) {
  EXPECT_EQ(sbatch_quoted("--nodes=2"), "--nodes=2");
  EXPECT_EQ(sbatch_quoted("--comment=a b"), "\"--comment=a b\"");
  EXPECT_EQ(sbatch_quoted("--comment=\"\\"), "\"--comment=\\\"\\\\\"");
}

TEST(SlurmTime, HasFiveSpellings) {
  EXPECT_EQ(parse_slurm_time("90"), 90 * 60);
  EXPECT_EQ(parse_slurm_time("90:30"), 90 * 60 + 30);
  EXPECT_EQ(parse_slurm_time("1:30:00"), 5400);
  EXPECT_EQ(parse_slurm_time("1-12"), 36 * 3600);
  EXPECT_EQ(parse_slurm_time("1-12:30"), 36 * 3600 + 1800);
  EXPECT_EQ(parse_slurm_time("1-12:30:05"), 36 * 3600 + 1805);
  for (const char* bad : {"", "x", "1:2:3:4", "-1", "1-", "1:", ":1", "1-2:3:4:5", "99999999999"})
    EXPECT_EQ(parse_slurm_time(bad), std::nullopt) << bad;
}

TEST(SlurmCluster, ReadsWhatSlurmSays) {
  const JobState waits = parse_squeue("7", "PENDING|Resources|2026-11-18T12:00:00|");
  EXPECT_EQ(waits.phase, JobState::Phase::waiting);
  EXPECT_EQ(waits.why, "Resources");
  EXPECT_EQ(waits.may_start, "2026-11-18T12:00:00");
  const JobState runs = parse_squeue("7", "RUNNING|None|2026-11-18T12:00:00|n[1-2]");
  EXPECT_EQ(runs.phase, JobState::Phase::running);
  EXPECT_EQ(runs.nodes, "n[1-2]");
  EXPECT_EQ(runs.why, "");
  EXPECT_EQ(parse_squeue("7", "NODE_FAIL|NonZeroExitCode|N/A|n1").phase, JobState::Phase::ended);
  EXPECT_EQ(parse_sacct("7", "CANCELLED by 1000|n1").phase, JobState::Phase::ended);
  EXPECT_EQ(parse_sacct("7", "PENDING|None assigned").nodes, "");
  EXPECT_EQ(parse_squeue("7", "").phase, JobState::Phase::ended);
  const JobState array = parse_squeue(
      "8",
      "COMPLETED|None|N/A|n1\nPENDING|Resources|N/A|\nRUNNING|None|N/A|n2\nRUNNING|None|N/A|n3\nRUNNING|None|N/A|n2\n");
  EXPECT_EQ(array.phase, JobState::Phase::running);
  EXPECT_EQ(array.nodes, "n2,n3");
  EXPECT_EQ(parse_squeue("8", "COMPLETED|None|N/A|n1\nPENDING|Dependency|N/A|\n").why, "Dependency");
  EXPECT_EQ(parse_squeue("8", "COMPLETED|None|N/A|n1\nFAILED|NonZeroExitCode|N/A|n2\n").word, "FAILED");
  EXPECT_EQ(parse_sacct("8", "COMPLETED|n1\nNODE_FAIL|n2\n").word, "NODE_FAIL");
}

}  // namespace
}  // namespace megalith::launch
