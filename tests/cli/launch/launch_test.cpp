#include <gtest/gtest.h>

#include <fstream>

#include "cli/background_program.h"
#include "cli/run_program.h"
#include "core/file.h"
#include "expect_error.h"
#include "repository.h"
#include "temp_dir.h"

namespace megalith::cli::testing {
namespace {

const std::string kSmallGpt =
    " trainer.accelerator=cpu trainer.cpu_threads=1 trainer.limit_val_batches=0 model.num_layers=2 model.hidden_size=32"
    " model.ffn_hidden_size=64 model.num_attention_heads=2 model.encoder_seq_length=32 model.global_batch_size=8";

class LaunchCommand : public ::testing::Test {
 protected:
  LaunchCommand() { std::filesystem::create_symlink(in_repository("recipes"), folder_ / "recipes"); }

  Outcome run(const std::string& arguments) const {
    return run_program("launch " + arguments, folder_.path().string(),
                       "env -u SLURM_JOB_ID XDG_STATE_HOME=" + (folder_ / "state").string());
  }
  void expect_refused(const std::string& arguments, const std::vector<std::string>& parts) const {
    SCOPED_TRACE(arguments);
    const Outcome outcome = run(arguments);
    EXPECT_EQ(outcome.exit_code, 2) << outcome.output;
    expect_parts(outcome.output, parts);
  }
  bool becomes(const std::string& name, const std::string& words) const {
    return wait_until([&] { return run("status " + name).output.find(words) != std::string::npos; }, 120.0);
  }

  megalith::testing::TempDir folder_;
};

TEST_F(LaunchCommand, RendersTheSameBytesAndLeavesNothing) {
  const std::string command =
      "slurm --nodes 2 --time 4:00:00 --render -- train -c recipes/gpt3-375m.yaml trainer.max_steps=7";
  const Outcome first = run(command);
  EXPECT_EQ(first.exit_code, 0) << first.output;
  EXPECT_EQ(run(command).output, first.output);
  EXPECT_FALSE(std::filesystem::exists(folder_ / "runs"));
  const std::string root = std::filesystem::canonical(folder_.path()).string();
  expect_parts(first.output, {"#SBATCH --job-name=gpt3-375m\n", "#SBATCH --nodes=2\n", "#SBATCH --gpus-per-node=8\n",
                              "#SBATCH --time=4:00:00\n", "#SBATCH --signal=USR1@300\n", "--nproc 8",
                              "trainer.max_steps=7", "-c " + root + "/runs/gpt3-375m/launch/gpt3-375m/gpt3-375m.yaml",
                              "exp_manager.explicit_log_dir=" + root + "/runs/gpt3-375m"});
}

TEST_F(LaunchCommand, EveryReasonComesAtOnce) {
  expect_refused(
      "slurm --nodes 3 --time 4 --set 'slurm.sbatch[0]=x' --render -- train -c recipes/gpt3-175b.yaml "
      "model.tokenizer.vocab_file=none.json model.tokenizer.merge_file=none.txt",
      {"reasons why this cannot be launched", "cannot open", "none.json", "layout", "time limit 4",
       "'x' is not an option"});
}

TEST_F(LaunchCommand, MistakesAreRefused) {
  expect_refused("slurm", {"command", "required"});
  expect_refused("slurm --render --", {"command", "required"});
  expect_refused("slurm --chain 0 -- train -c recipes/gpt3-375m.yaml", {"--chain", "1"});
  expect_refused("slurm -- data", {"`data` needs one of its verbs"});
  expect_refused("slurm -- tran", {"unknown verb 'tran'; did you mean 'train'?"});
  expect_refused("slurm -- train --nprc 2", {"unknown option '--nprc'"});
  expect_refused("slurm -- launch list", {"cannot launch another"});
  expect_refused("slurm --cluster nowhere -- train -c recipes/gpt3-375m.yaml", {"there is no profile 'nowhere'"});
  expect_refused("slurm --cluster gke-a3-mega -- train -c recipes/gpt3-375m.yaml", {"is for kubernetes"});
  expect_refused("slurm --set slurm.partiton=x -- train -c recipes/gpt3-375m.yaml",
                 {"did you mean `slurm.partition`?"});
  expect_refused("slurm --name 'a b' --render -- train -c recipes/gpt3-375m.yaml", {"'a b' cannot be the name"});
  expect_refused("slurm --name " + std::string(64, 'x') + " --render -- train -c recipes/gpt3-375m.yaml",
                 {"cannot be the name", "at most 63"});
  expect_refused("slurm --render --ranks-per-node 9 -- train -c recipes/gpt3-375m.yaml", {"8 GPUs of a node"});
  expect_refused("slurm --render --nodes 2 -- train -c recipes/gpt3-375m.yaml trainer.num_nodes=4",
                 {"32 ranks", "16 were"});
  expect_refused("slurm --render --set image=x.sqsh -- train -c recipes/gpt3-375m.yaml", {"run directory", "mount"});
  expect_refused(
      "slurm --render --set image=x.sqsh,mounts[0].source=/nowhere -- train -c recipes/gpt3-375m.yaml "
      "exp_manager.explicit_log_dir=/nowhere/run",
      {"/nowhere/run is on a mount whose source this machine does not have", "mounts[0].seen_at=PATH"});
  expect_refused("slurm --render -- generate --checkpoint x --nope", {"--nope"});
  expect_refused("local -- train --help", {"--help"});
  expect_refused("local --time 1 -- train -c recipes/gpt3-125m.yaml" + kSmallGpt, {"time limit", "saves"});
  expect_refused("status nothing", {"there is no launch 'nothing'", "launch list"});
  expect_refused("profile nothing", {"there is no profile"});
}

TEST_F(LaunchCommand, DataBecomesStages) {
  for (const char* name : {"part10.jsonl", "part2.jsonl"}) replace_file(folder_ / name, "{\"text\": \"x\"}\n");
  const std::string tokenize = " -- data tokenize --input 'text/*' --output-dir tokens";
  const std::string extract = "-- data extract --input 'part*.jsonl' --output-dir text";
  const Outcome outcome = run("slurm --name d --nodes 3 --array 5 --ranks-per-node 2 --stage tokenize=1x4 --render " +
                              extract + tokenize + " -- data merge --input 'tokens/*_document' --output-prefix all");
  EXPECT_EQ(outcome.exit_code, 0) << outcome.output;
  const std::string root = std::filesystem::canonical(folder_.path()).string();
  expect_parts(
      outcome.output,
      {"--job-name=d.extract --ntasks-per-node=2 --array=0-4%3 job.sh extract",
       "--ntasks-per-node=4 --array=0-4%1 --dependency=afterok:$id --kill-on-invalid-dep=yes job.sh tokenize",
       "--ntasks-per-node=1 --array=0-0 ",
       "data extract \\\n  --input-list " + root + "/runs/d/launch/d/extract.inputs", "--input 'tokens/*_document'"});
  expect_refused("slurm --render -- data extract --input 'none*' --output-dir text",
                 {"extract: no file matches none*"});
  expect_refused("slurm --render " + extract + " --worker 0/2", {"leave --worker out"});
  expect_refused("slurm --render --stage tokenise=1x4 " + extract + tokenize,
                 {"no stage 'tokenise'", "did you mean 'tokenize'"});
  expect_refused("slurm --render --stage extract=4 " + extract, {"NAME=NODESxWORKERS"});
  for (const char* size : {"1048577x1", "1x1048577", "99999999999999999999x2"})
    expect_refused(std::string("slurm --render --stage extract=") + size + " " + extract, {"1048576 is the most"});
  expect_refused("slurm --render --array 99999999999 " + extract, {"--array", "1048576"});
  expect_refused(
      "slurm --render --stage merge=2x1 -- data tokenize --input part2.jsonl --output-dir t -- data merge --input t/x "
      "--output-prefix y",
      {"`merge` is one process"});
  expect_refused(
      "slurm --render " + extract + tokenize + " --tokenizer-type GPT2BPETokenizer --vocab-file v --merge-file text/m",
      {"tokenize: --vocab-file v does not exist"});
  expect_refused("slurm --render --chain 2 " + extract, {"--chain is for training"});
  expect_refused("slurm --render --array 2 -- train -c recipes/gpt3-375m.yaml", {"--array and --stage are for"});
  expect_refused("slurm --render " + extract + " -- train -c recipes/gpt3-375m.yaml", {"--after NAME"});
  expect_refused("local " + extract + tokenize, {"on Slurm"});
}

TEST_F(LaunchCommand, WithoutSlurmItSaysWhatIsMissing) {
  const Outcome outcome = run_program("launch slurm -- train -c recipes/gpt3-375m.yaml", folder_.path().string(),
                                      "env -u SLURM_JOB_ID PATH=/nowhere");
  EXPECT_EQ(outcome.exit_code, 2) << outcome.output;
  expect_parts(outcome.output, {"there is no sbatch here", "login node"});
}

TEST_F(LaunchCommand, FromInsideOfAJobNothingIsLaunched) {
  const Outcome outcome =
      run_program("launch slurm -- train -c recipes/gpt3-375m.yaml", folder_.path().string(), "SLURM_JOB_ID=7");
  EXPECT_EQ(outcome.exit_code, 2) << outcome.output;
  expect_parts(outcome.output, {"inside of Slurm's job 7"});
}

TEST_F(LaunchCommand, FilesThatThisMachineDoesNotSeeAreListed) {
  const std::string here = folder_.path().string();
  const Outcome outcome =
      run("slurm --render --set image=x.sqsh --set mounts[0].source=" + here +
          ",mounts[0].target=/all -- train -c recipes/gpt3-375m.yaml exp_manager.explicit_log_dir=/all/run "
          "model.tokenizer.vocab_file=/bpe/v.json model.tokenizer.merge_file=/bpe/m.txt");
  EXPECT_EQ(outcome.exit_code, 0) << outcome.output;
  expect_parts(outcome.output,
               {"not checked", "/bpe/v.json", "/bpe/m.txt", "--container-mounts=" + here + ":/all",
                "launch=" + here + "/run/launch/gpt3-375m", "-c /all/run/launch/gpt3-375m/gpt3-375m.yaml",
                "MEGALITH_STORE_SECRET_FILE=/all/run/launch/gpt3-375m/secret"});
}

TEST_F(LaunchCommand, ProfilePrintsEveryValue) {
  const Outcome outcome = run("profile dgx-cloud --set slurm.account=me");
  EXPECT_EQ(outcome.exit_code, 0) << outcome.output;
  expect_parts(outcome.output, {"account: me  # --set slurm.account=me", "tasks: gpu  # dgx-cloud.yaml:"});
}

TEST_F(LaunchCommand, LocalRunsInTheBackgroundAndIsFollowed) {
  const std::string command = "local --name small -- train -c recipes/gpt3-125m.yaml trainer.max_steps=4" + kSmallGpt;
  const Outcome outcome = run(command);
  ASSERT_EQ(outcome.exit_code, 0) << outcome.output;
  EXPECT_TRUE(becomes("small", "ended: complete (exit code 0)")) << run("status small").output;
  expect_parts(run("status small").output, {"step      4 of 4, loss", "start 1 on", "end 1, exit code 0: complete"});
  EXPECT_NE(run("logs -f small").output.find("4/4"), std::string::npos);
  expect_parts(run("logs --rank 0 small").output, {"Megalith"});
  expect_parts(run("list").output, {"small  local       ended: complete"});
  expect_parts(run(command).output, {"is complete, there is nothing to launch"});
  expect_parts(run("stop small").output, {"has ended already"});
  const Outcome diff =
      run("local --name small --diff -- train -c recipes/gpt3-125m.yaml trainer.max_steps=9" + kSmallGpt);
  expect_parts(diff.output, {"-  trainer.max_steps=4", "+  trainer.max_steps=9"});
  EXPECT_EQ(run("remove small").exit_code, 0);
  EXPECT_TRUE(std::filesystem::exists(folder_ / "runs/gpt3-125m/hparams.yaml"));
  expect_parts(run("list").output, {"there are no launches"});
}

TEST_F(LaunchCommand, LocalIsStoppedAndSaves) {
  const Outcome outcome =
      run("local --name long -- train -c recipes/gpt3-125m.yaml trainer.max_steps=100000" + kSmallGpt);
  ASSERT_EQ(outcome.exit_code, 0) << outcome.output;
  ASSERT_TRUE(becomes("long", "loss")) << run("status long").output;
  expect_refused("local --name long -- train -c recipes/gpt3-125m.yaml" + kSmallGpt,
                 {"long is running", "launch stop long"});
  expect_refused("remove long", {"stop it first"});
  EXPECT_EQ(run("stop long").exit_code, 0);
  EXPECT_TRUE(becomes("long", "ended: stopped on request (exit code 75)")) << run("status long").output;
  EXPECT_NE(run("status long").output.find("saved     step"), std::string::npos) << run("status long").output;
}

}  // namespace
}  // namespace megalith::cli::testing
