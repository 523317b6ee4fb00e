// What keeps the work of a run from getting lost, mixed up or taken for another's, as the user sees it.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <fstream>

#include "core/file.h"
#include "core/process/exit_codes.h"
#include "run_program.h"
#include "temp_dir.h"

namespace megalith::cli::testing {
namespace {

namespace fs = std::filesystem;
using ::megalith::testing::TempDir;

const std::string kCheckpoint = "exp_manager.checkpoint_callback_params.";

// Each test has a directory of its own, with whatever its runs left there.
class CheckpointSafety : public ::testing::Test {
 protected:
  static std::string training(const std::string& run, const std::string& more = "") {
    return "train trainer.accelerator=cpu trainer.cpu_threads=1 model.micro_batch_size=2 model.global_batch_size=2 "
           "model.encoder_seq_length=16 model.num_layers=1 model.hidden_size=16 model.num_attention_heads=2 "
           "model.data.data_impl=mock exp_manager.resume_if_exists=true trainer.max_steps=4 "
           "model.optim.sched.max_steps=100 exp_manager.create_tensorboard_logger=false "
           "exp_manager.explicit_log_dir=" +
           run + " " + more;
  }

  Outcome run(const std::string& arguments, const std::string& variables = "") const {
    return run_program(arguments, dir_.path().string(), variables);
  }

  // `words`: separated by '|', each of which the output must hold.
  void expect(int exit_code, const std::string& words, const std::string& arguments) const {
    const Outcome outcome = run(arguments);
    EXPECT_EQ(outcome.exit_code, exit_code) << arguments << "\n" << outcome.output;
    std::istringstream texts(words);
    for (std::string text; std::getline(texts, text, '|');)
      EXPECT_NE(outcome.output.find(text), std::string::npos) << text << "\n" << outcome.output;
  }

  std::vector<std::string> steps_in(const std::string& directory) const {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(dir_ / directory)) {
      if (entry.path().filename().string().starts_with("step-")) names.push_back(entry.path().filename().string());
    }
    std::sort(names.begin(), names.end());
    return names;
  }

  TempDir dir_;
};

size_t count(const std::string& text, const std::string& part) {
  size_t found = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++found;
  return found;
}

TEST_F(CheckpointSafety, ACheckpointOfAnotherRunIsRefusedByName) {
  const std::string shared = kCheckpoint + "dirpath=shared ";
  expect(0, "", training("a", shared));
  const std::string its_run = read_text(dir_ / "a/.megalith.starts").substr(0, 16);
  const std::string refusal =
      "shared/step-00000004 is a checkpoint of run " + its_run + " (a), this is run |(b)|dirpath";
  expect(2, refusal, training("b", shared + "trainer.max_steps=6"));
  // It had a place of its own before.
  expect(0, "", training("b", "trainer.max_steps=2"));
  expect(2, refusal, training("b", shared + "trainer.max_steps=6"));
  EXPECT_EQ(steps_in("shared"), std::vector<std::string>{"step-00000004"});
  expect(0, "every byte as it was written", "checkpoint verify shared");
  expect(0, "resuming from shared/step-00000004", training("a", shared + "trainer.max_steps=5"));

  // On purpose, and said.
  expect(0, "weights from shared/step-00000005, of run " + its_run,
         training("weights", "model.restore_from_path=shared/step-00000005 "));
  expect(0, "resuming from shared/step-00000005, of run " + its_run,
         training("all", "model.resume_from_checkpoint=shared/step-00000005 trainer.max_steps=6"));
}

TEST_F(CheckpointSafety, TwoRunsCannotSaveToOneDirectoryAtOnce) {
  fs::create_directory(dir_ / "shared");
  const File held = File::open_for_appending(dir_ / "shared/.megalith.lock");
  ASSERT_EQ(::flock(held.descriptor(), LOCK_EX), 0);
  expect(2, "another run that is training now saves its checkpoints to shared",
         training("b", kCheckpoint + "dirpath=shared"));
}

TEST_F(CheckpointSafety, ASwappedTokenizerIsFound) {
  {
    std::ofstream text(dir_ / "text.txt");
    for (int i = 0; i < 50; ++i) text << "the cat sat on the mat, and the dog sat on the cat\n";
  }
  expect(0, "", "data train-tokenizer --input text.txt --vocab-size 270 --output-dir tokenizer");
  const std::string files =
      "model.tokenizer.vocab_file=tokenizer/vocab.json model.tokenizer.merge_file=tokenizer/merges.txt ";
  const std::string train = training("run", "model.tokenizer.type=GPT2BPETokenizer " + files);
  expect(0, "", train);
  expect(0, "", "checkpoint verify run");
  // Two merges change places.
  const fs::path merges = dir_ / "run/checkpoints/tokenizer/merges.txt";
  std::vector<std::string> lines;
  std::istringstream kept(read_text(merges));
  for (std::string line; std::getline(kept, line);) lines.push_back(line);
  std::swap(lines[lines.size() - 1], lines[lines.size() - 2]);
  {
    std::ofstream swapped(merges);
    for (const std::string& line : lines) swapped << line << "\n";
  }
  const std::string refusal = "run/checkpoints/tokenizer/merges.txt is not the file that the model learned from";
  expect(2, "\nrun/checkpoints/tokenizer: damaged: " + refusal, "checkpoint verify run");
  expect(2, refusal, "generate --checkpoint run --prompt the --max-tokens 2");
  expect(2, refusal, "evaluate --checkpoint run");
  expect(2, refusal, "checkpoint convert run --to hugging-face --output exported");
  expect(2, refusal, train + "trainer.max_steps=6");
  // Whoever names another tokenizer wants that one.
  expect(0, "", "generate --checkpoint run --prompt the --max-tokens 2 " + files);
  // The run's own is the same: it is put back.
  fs::remove(merges);
  expect(2, "merges.txt is missing", "checkpoint verify run");
  fs::copy(dir_ / "tokenizer/merges.txt", merges);
  expect(0, "", "checkpoint verify run");
}

TEST_F(CheckpointSafety, VerifyFindsStepsThatAreLostOrMisnamed) {
  expect(0, "", training("run", kCheckpoint + "every_n_train_steps=2"));
  const fs::path checkpoints = dir_ / "run/checkpoints";
  fs::copy(checkpoints / "step-00000002", checkpoints / "step-00000003");
  expect(2, "step-00000003: damaged: |holds a checkpoint of step 2", "checkpoint verify run");
  expect(2, "holds a checkpoint of step 2", "checkpoint verify run/checkpoints/step-00000003");
  fs::rename(checkpoints / "step-00000003", checkpoints / "step-2-copy");
  expect(2, "step-2-copy: damaged: its name is not that of a step", "checkpoint verify run");
  fs::remove_all(checkpoints / "step-2-copy");
  // As a save that was cut short leaves it.
  fs::create_directory(checkpoints / "step-00000005");
  expect(0, "step-00000005: not a checkpoint", "checkpoint verify run");
  fs::remove(checkpoints / "step-00000002/manifest.json");
  expect(2, "step-00000002: damaged: its manifest.json is gone", "checkpoint verify run");
  fs::remove_all(checkpoints / "step-00000004");
  expect(2, "step-00000004: damaged: it is gone", "checkpoint verify run");
}

TEST_F(CheckpointSafety, ARunWhoseOnlyCheckpointLostItsManifestDoesNotBeginAnew) {
  expect(0, "", training("run"));
  const fs::path step = dir_ / "run/checkpoints/step-00000004";
  fs::rename(step / "manifest.json", dir_ / "kept.json");
  expect(
      2,
      "no checkpoint of this run can be used|run/checkpoints/step-00000004: its manifest.json is gone|explicit_log_dir",
      training("run", "trainer.max_steps=6"));
  fs::rename(dir_ / "kept.json", step / "manifest.json");
  expect(0, "resuming from run/checkpoints/step-00000004", training("run", "trainer.max_steps=6"));
  fs::remove_all(dir_ / "run/checkpoints/step-00000004");
  fs::remove_all(dir_ / "run/checkpoints/step-00000006");
  expect(2, "run/checkpoints/step-00000006: it is gone", training("run", "trainer.max_steps=8"));
}

TEST_F(CheckpointSafety, ARunThatWasKilledInItsFirstSaveBeginsAnew) {
  const std::string on_disk = kCheckpoint + "memory_dirpath=none ";
  const Outcome killed = run(training("run", on_disk + "resilience.failpoints=[checkpoint.before_manifest=exit]"));
  EXPECT_NE(killed.exit_code, 0);
  EXPECT_EQ(steps_in("run/checkpoints").size(), 1u);
  expect(0, "the save did not finish|starting from step 0", training("run", on_disk));
}

// Nothing was saved on the persistent tier when it was killed.
TEST_F(CheckpointSafety, ARunOfLocalTiersOutlivesItsCountOfStarts) {
  const std::string local = kCheckpoint + "local_every_n_train_steps=2 " + kCheckpoint + "local_dirpath=node " +
                            kCheckpoint + "memory_dirpath=none " + kCheckpoint + "async_save=false ";
  const fs::path starts = dir_ / "run/.megalith.starts";
  const std::string killed = "resilience.failpoints=[train.step=exit@3] trainer.max_steps=20";
  EXPECT_NE(run(training("run", local + killed)).exit_code, 0);
  const std::string id = read_text(starts).substr(0, 16);

  fs::remove(starts);
  Outcome outcome = run(training("run", local + killed));
  EXPECT_NE(outcome.output.find("resuming from step 2 on the nodes"), std::string::npos) << outcome.output;
  EXPECT_NE(outcome.output.find(".megalith.starts is lost or damaged: its checkpoints say that this is run " + id),
            std::string::npos)
      << outcome.output;
  EXPECT_EQ(read_text(starts), id + " 2\n");

  for (const std::string nonsense : {"banana", "", "0123456789abcdef -7", "0123456789abcdef 99999999999999999999"}) {
    std::ofstream(starts) << nonsense;
    outcome = run(training("run", local + "resilience.failpoints=[train.step=exit@1] trainer.max_steps=20"));
    EXPECT_NE(outcome.output.find("resuming from step 4 on the nodes"), std::string::npos) << outcome.output;
    EXPECT_TRUE(read_text(starts).starts_with(id + " ")) << nonsense;
  }
  expect(0, "checkpoint of step 8 is in", training("run", local + "trainer.max_steps=8"));
}

TEST_F(CheckpointSafety, WhoseCheckpointsTheseAreIsAskedWhereNothingSays) {
  const std::string elsewhere = kCheckpoint + "dirpath=elsewhere ";
  expect(0, "", training("run", elsewhere));
  const std::string line = read_text(dir_ / "run/.megalith.starts");
  fs::remove(dir_ / "run/.megalith.starts");
  for (int time = 0; time < 2; ++time) {
    expect(2, "If it is this run's own, write the line '" + line.substr(0, 18) + "' to run/.megalith.starts",
           training("run", elsewhere + "trainer.max_steps=6"));
  }
  std::ofstream(dir_ / "run/.megalith.starts") << line;
  expect(0, "resuming from elsewhere/step-00000004", training("run", elsewhere + "trainer.max_steps=6"));
}

TEST_F(CheckpointSafety, DirectoriesAreTriedOutBeforeTheFirstStep) {
  std::ofstream(dir_ / "file") << "not a directory";
  for (const std::string key : {"dirpath", "local_dirpath"}) {
    for (const std::string where : {"file", "file/checkpoints", "/proc/checkpoints"}) {
      const Outcome outcome = run(training("run-" + key, kCheckpoint + key + "=" + where));
      EXPECT_EQ(outcome.exit_code, 2) << outcome.output;
      EXPECT_NE(outcome.output.find("checkpoints cannot be written to " + where), std::string::npos) << outcome.output;
      EXPECT_NE(outcome.output.find("choose another directory with " + kCheckpoint + key), std::string::npos);
      EXPECT_EQ(outcome.output.find("1/4"), std::string::npos) << outcome.output;
    }
  }
  // Nothing is left of the trial.
  expect(0, "", training("good", kCheckpoint + "dirpath=good/saved"));
  for (const auto& entry : fs::directory_iterator(dir_ / "good/saved"))
    EXPECT_EQ(entry.path().string().find("probe"), std::string::npos);
}

TEST_F(CheckpointSafety, GoodWeightsAreSavedWhenAGradientIsNotFinite) {
  const std::string explode = "model.optim.lr=1e30 model.optim.sched.name=constant trainer.max_steps=20 ";
  const Outcome outcome = run(training("run", explode));
  EXPECT_EQ(outcome.exit_code, kExitNonFinite) << outcome.output;
  const std::vector<std::string> steps = steps_in("run/checkpoints");
  ASSERT_EQ(steps.size(), 1u) << outcome.output;
  EXPECT_NE(outcome.output.find("is not finite"), std::string::npos);
  EXPECT_NE(outcome.output.find("the weights are those before this step, saved in run/checkpoints/" + steps[0]),
            std::string::npos)
      << outcome.output;
  expect(0, "", "checkpoint verify run");
  // As if it had been saved before that step: the same one fails again.
  const size_t at = outcome.output.find("megalith: step ");
  ASSERT_NE(at, std::string::npos) << outcome.output;
  const std::string failure = outcome.output.substr(at, outcome.output.find(" (loss", at) - at);
  expect(kExitNonFinite, failure, training("run", explode));
}

TEST_F(CheckpointSafety, TheUmaskIsObeyed) {
  const auto mode = [&](const std::string& name) {
    struct stat info {};
    EXPECT_EQ(::stat((dir_ / name).c_str(), &info), 0) << name;
    return fmt::format("{:o}", info.st_mode & 0777);
  };
  for (const auto& [mask, of_directory, of_file] : {std::tuple("022", "755", "644"), {"077", "700", "600"}}) {
    const std::string run_name = std::string("run") + mask;
    const std::string umask = std::string("umask ") + mask + ";";
    EXPECT_EQ(run(training(run_name), umask).exit_code, 0);
    const std::string step = run_name + "/checkpoints/step-00000004";
    for (const std::string& name : {run_name, run_name + "/checkpoints", step})
      EXPECT_EQ(mode(name), of_directory) << name;
    for (const std::string& name : {run_name + "/report.html", run_name + "/hparams.yaml", run_name + "/events.jsonl",
                                    step + "/manifest.json", step + "/shard-g1-r00000.safetensors"}) {
      EXPECT_EQ(mode(name), of_file) << name;
    }
    const std::string exported = std::string("exported") + mask;
    EXPECT_EQ(run("checkpoint convert " + run_name + " --to hugging-face --output " + exported, umask).exit_code, 0);
    EXPECT_EQ(mode(exported), of_directory);
    EXPECT_EQ(mode(exported + "/config.json"), of_file);
  }
}

TEST_F(CheckpointSafety, ValuesThatCannotWorkAreRefusedInADryRun) {
  expect(2, "save_top_k`=0 would keep no checkpoint", training("run", "--dry-run " + kCheckpoint + "save_top_k=0"));
  expect(2, "validation_files`=-1 must be at least 0", training("run", "--dry-run model.data.validation_files=-1"));
  expect(2, "use null, val_loss, reduced_train_loss", training("run", "--dry-run " + kCheckpoint + "monitor=val_acc"));
  expect(2, "would keep the oldest", training("run", "--dry-run " + kCheckpoint + "monitor=step"));
  expect(0, "monitor: null",
         training("run", "--print-config " + kCheckpoint + "monitor=step " + kCheckpoint + "mode=max"));
  expect(0, "",
         training("run", "--dry-run exp_manager.create_checkpoint_callback=false " + kCheckpoint + "save_top_k=0"));
  for (const std::string text : {"0", "-5", "abc", "1:2", "1:2:3:4:5", "m", "1:-2:3"})
    expect(2, "train_time_interval is '" + text + "'",
           training("run", "--dry-run " + kCheckpoint + "train_time_interval=" + text));
  for (const std::string text : {"600", "0.5s", "10m", "2h", "1:30:00", "00:04:00:00"})
    expect(0, "", training("run", "--dry-run " + kCheckpoint + "train_time_interval=" + text));
  // What others write for "never".
  expect(0, "", training("run", "--persistent-ckpt-interval -1 --local-ckpt-interval -1"));
  EXPECT_EQ(steps_in("run/checkpoints"), std::vector<std::string>{"step-00000004"});
}

TEST_F(CheckpointSafety, TheBestByTheMonitoredLossAndTheNewestAreKept) {
  const std::string monitored = "trainer.val_check_interval=1 trainer.limit_val_batches=2 model.optim.lr=0.01 " +
                                kCheckpoint + "every_n_train_steps=1 " + kCheckpoint + "save_top_k=1 " + kCheckpoint +
                                "monitor=val_loss " + kCheckpoint + "mode=";
  // The loss falls: the largest is the first.
  expect(0, "", training("largest", monitored + "max trainer.max_steps=6"));
  EXPECT_EQ(steps_in("largest/checkpoints"), (std::vector<std::string>{"step-00000001", "step-00000006"}));
  expect(0, "val_loss", "checkpoint inspect largest/checkpoints/step-00000001");
  // A run that goes on knows what it has.
  expect(0, "resuming from largest/checkpoints/step-00000006",
         training("largest", monitored + "max trainer.max_steps=7"));
  EXPECT_EQ(steps_in("largest/checkpoints"), (std::vector<std::string>{"step-00000001", "step-00000007"}));
  expect(0, "", training("smallest", monitored + "min trainer.max_steps=6"));
  EXPECT_EQ(steps_in("smallest/checkpoints").back(), "step-00000006");
  expect(0, "no val_loss to keep checkpoints by", training("none", kCheckpoint + "monitor=val_loss"));
}

TEST_F(CheckpointSafety, CheckpointsCanBeDueByTime) {
  const Outcome outcome = run(training("run", "trainer.max_steps=1000 " + kCheckpoint + "train_time_interval=0.02 " +
                                                  kCheckpoint + "async_save=false " + kCheckpoint + "save_top_k=-1"));
  EXPECT_EQ(outcome.exit_code, 0) << outcome.output;
  EXPECT_GE(steps_in("run/checkpoints").size(), 2u) << outcome.output;
}

TEST_F(CheckpointSafety, EachThingIsSaidOnce) {
  const std::string often = kCheckpoint + "every_n_train_steps=2 ";
  Outcome outcome = run(training("run", often));
  EXPECT_EQ(count(outcome.output, "checkpoint of step 4 is in"), 1u) << outcome.output;
  outcome = run(training("run", often));
  EXPECT_EQ(outcome.exit_code, 0);
  EXPECT_EQ(count(outcome.output, "checkpoint of step"), 0u) << "nothing to do:\n" << outcome.output;
  outcome = run(training("failing", "resilience.failpoints=[checkpoint.before_manifest=io]"));
  EXPECT_EQ(outcome.exit_code, kExitIo);
  EXPECT_EQ(count(outcome.output, "injected I/O error"), 1u) << outcome.output;
  EXPECT_NE(outcome.output.find("the checkpoint of step 4 could not be saved: "), std::string::npos) << outcome.output;
}

}  // namespace
}  // namespace megalith::cli::testing
