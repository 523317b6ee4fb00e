// NeMo's own recipes, what a run stores of its config, and values that cannot be used.
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "core/file.h"
#include "final_state.h"
#include "golden_data.h"
#include "observe/sinks/events.h"
#include "repository.h"
#include "run_program.h"
#include "temp_dir.h"

namespace megalith::cli::testing {
namespace {

using ::megalith::testing::final_state;
using ::megalith::testing::TempDir;

const std::string kTiny =
    "trainer.accelerator=cpu model.micro_batch_size=1 model.global_batch_size=4 model.encoder_seq_length=16 "
    "model.num_layers=1 model.hidden_size=8 model.num_attention_heads=2 model.data.data_impl=mock ";

void expect_says(const Outcome& outcome, int exit_code, const std::vector<std::string>& words) {
  EXPECT_EQ(outcome.exit_code, exit_code) << outcome.output;
  for (const std::string& said : words)
    EXPECT_NE(outcome.output.find(said), std::string::npos) << said << "\n" << outcome.output;
}

bool holds(const std::string& text, const std::string& words) {
  return text.find(words) != std::string::npos;
}

TEST(NemoFiles, RunAsTheyAreOrAreRefusedForATrueReason) {
  MEGALITH_GOLDEN_OR_SKIP(golden);
  const std::string script = in_repository("scripts/check-nemo-files").string();
  std::string table;
  {
    const std::string command =
        "MEGALITH=" + std::string(MEGALITH_PROGRAM) + " " + script + " " + (golden / "nemo").string() + " 2>&1";
    FILE* pipe = popen(command.c_str(), "r");
    std::array<char, 4096> buffer{};
    while (const size_t count = fread(buffer.data(), 1, buffer.size(), pipe)) table.append(buffer.data(), count);
    EXPECT_EQ(pclose(pipe), 0) << table;
  }
  std::istringstream lines(table);
  int files = 0;
  for (std::string line; std::getline(lines, line);) {
    if (!holds(line, ".yaml")) continue;
    ++files;
    const bool experts = holds(line, "mixtral");
    if (experts) {
      EXPECT_TRUE(holds(line, "refused") && holds(line, "mixture-of-experts")) << line;
    } else {
      EXPECT_TRUE(holds(line, "runs") && holds(line, "parameters")) << line;
    }
  }
  EXPECT_EQ(files, 18) << table;
}

TEST(NemoFiles, WhatTheirLauncherFetchesIsListed) {
  MEGALITH_GOLDEN_OR_SKIP(golden);
  const std::string dry =
      "train --dry-run trainer.num_nodes=32 -c " + (golden / "nemo/gpt3-175b-256gpus-fp8.yaml").string();
  const std::string missing = "cannot open gpt2-vocab.json (model.tokenizer.vocab_file)";
  const TempDir dir;
  expect_says(run_program(dry, dir.path().string()), 0, {"[Megalith W", missing, "174,604,259,328"});
  expect_says(run_program(dry + " --require-files", dir.path().string()), 2, {missing});
}

TEST(NemoFiles, ScaledPositionsAreLlama31s) {
  const TempDir dir;
  expect_says(
      run_program("train trainer.max_steps=1 exp_manager.explicit_log_dir=run model.position_embedding_type=rope "
                  "model.scale_positional_embedding=true model.optim.name=mcore_distributed_optim " +
                      kTiny,
                  dir.path().string()),
      0, {});
  const std::string hparams = read_text(dir / "run/hparams.yaml");
  EXPECT_TRUE(holds(hparams, "factor: 1.0  # 8.0\n") && holds(hparams, "wrap_with_zero: false  # true\n")) << hparams;
}

TEST(StoredConfig, WhatARunDerivedIsDerivedAnew) {
  for (const std::string positions : {"learned_absolute", "rope"}) {
    SCOPED_TRACE(positions);
    const TempDir dir;
    const std::string path = dir.path().string();
    expect_says(run_program("train " + kTiny +
                                "trainer.max_steps=4 exp_manager.explicit_log_dir=run "
                                "model.position_embedding_type=" +
                                positions,
                            path),
                0, {});
    const std::string hparams = read_text(dir / "run/hparams.yaml");
    EXPECT_TRUE(hparams.starts_with("config_version: 2\n")) << hparams;
    EXPECT_TRUE(holds(hparams, "    seq_length: 0  # 16\n")) << hparams;
    EXPECT_TRUE(holds(hparams, "  encoder_seq_length: 16\n")) << hparams;

    const std::string shorter = " model.encoder_seq_length=8";
    expect_says(run_program("generate --checkpoint run --prompt And --greedy --max-tokens 4" + shorter, path), 0,
                {"And"});
    expect_says(run_program("evaluate --checkpoint run --batches 1" + shorter, path), 0, {"split"});
    expect_says(run_program("train -c run/hparams.yaml exp_manager.explicit_log_dir=longer trainer.max_steps=1 "
                            "model.encoder_seq_length=32",
                            path),
                0, {});
    EXPECT_TRUE(holds(read_text(dir / "longer/hparams.yaml"), "seq_length: 0  # 32\n"));
    // Lengthened, the schedule follows.
    expect_says(run_program("train -c run/hparams.yaml trainer.max_steps=6 exp_manager.resume_if_exists=true", path), 0,
                {"trainer.max_steps from 4 to 6", "model.optim.sched.max_steps from 4 to 6"});
    EXPECT_TRUE(holds(read_text(dir / "run/hparams.yaml"), "max_steps: 0  # 6\n"));
  }
}

TEST(StoredConfig, OfAnOlderMegalithCountsAsSet) {
  const TempDir dir;
  const std::string path = dir.path().string();
  std::ofstream(dir / "old.yaml") << "model:\n  encoder_seq_length: 16\n  max_position_embeddings: 16\n"
                                     "  data: {data_impl: mock, seq_length: 16}\n  optim: {sched: {max_steps: 40}}\n"
                                     "resilience: {failpoints: []}\n";
  expect_says(run_program("train --dry-run -c old.yaml", path), 0, {"note: old.yaml is of an older Megalith"});
  expect_says(run_program("train --dry-run -c old.yaml model.encoder_seq_length=8", path), 2,
              {"model.data.seq_length=null"});
  expect_says(run_program("train --dry-run -c old.yaml model.encoder_seq_length=8 model.data.seq_length=null", path), 0,
              {});
}

TEST(Values, ThatCannotBeUsedAreRefusedByTheDryRun) {
  const std::string dry = "train --dry-run " + kTiny;
  expect_says(run_program(dry + "model.optim.lr="), 2, {"override 'model.optim.lr='", "no value"});
  expect_says(run_program(dry + "model.nsys_profile.ranks=[1.5]"), 2, {"[1.5]", "a list of whole numbers"});
  expect_says(run_program(dry + "model.nsys_profile.ranks=[0,3]"), 0, {});
  expect_says(run_program(dry + "model.data.validation_files=-1"), 2,
              {"model.data.validation_files`=-1 must be at least 0"});
  expect_says(run_program(dry + "exp_manager.checkpoint_callback_params.save_top_k=0"), 2, {"save_top_k`=0"});
}

TEST(Layouts, TheSimplestWayOutAndTheMemoryOfEachAreSaid) {
  const auto recipe = [](const char* name) {
    return "train --dry-run -c " + in_repository("recipes").string() + "/" + name;
  };
  expect_says(run_program("train --dry-run " + kTiny + "model.micro_batch_size=4 --nproc 2"), 2,
              {"a global batch of 4 is not a multiple of micro batch 4 x data 2: use 8, or micro batch 2"});
  expect_says(run_program(recipe("gpt3-175b.yaml") + " trainer.num_nodes=1"), 2,
              {"layouts near it that work on 8 ranks", "GiB on the largest rank"});
}

TEST(Stopped, IsToldWhatIsMissingToGoOn) {
  const TempDir dir;
  const std::string path = dir.path().string();
  const std::string train = "train " + kTiny + "trainer.max_steps=4 resilience.failpoints=[train.step=sigterm@1] ";
  expect_says(run_program(train + "exp_manager.explicit_log_dir=a", path), 75,
              {"run the same command with exp_manager.resume_if_exists=true to continue"});
  expect_says(run_program(train + "exp_manager.explicit_log_dir=b exp_manager.resume_if_exists=true", path), 75,
              {"run the same command to continue"});
}

TEST(BatchRamp, GoesOnToTheSameBitsAndCountsItsOwnSamples) {
  const TempDir dir;
  const std::string path = dir.path().string();
  const std::string train = "train " + kTiny +
                            "model.hidden_dropout=0.1 model.rampup_batch_size=[1,1,6] "
                            "trainer.max_steps=7 exp_manager.resume_if_exists=true ";
  expect_says(run_program(train + "exp_manager.explicit_log_dir=whole", path), 0, {"7 steps, 304 tokens"});
  const std::string parts = train + "exp_manager.explicit_log_dir=parts ";
  expect_says(run_program(parts + "resilience.failpoints=[train.step=sigterm@3]", path), 75, {});
  expect_says(run_program(parts, path), 0, {"resuming from"});
  EXPECT_EQ(final_state(dir / "whole", 7), final_state(dir / "parts", 7));
  // Batches of 1, 1, 2, 3, 4 samples and so on, by what was consumed before: 19 in 7 steps.
  const std::string events = read_text(dir / "whole/events.jsonl");
  for (const char* step : {"\"consumed_samples\":1.0", "\"consumed_samples\":2.0", "\"consumed_samples\":4.0"})
    EXPECT_TRUE(holds(events, step)) << step << "\n" << events.substr(0, 3000);
}

TEST(BatchRamp, StagesThatCannotWorkAreNamed) {
  const std::string dry = "train --dry-run " + kTiny;
  expect_says(run_program(dry + "model.micro_batch_size=2 model.rampup_batch_size=[1,1,8]"), 2,
              {"stage 1 of the 4 of model.rampup_batch_size", "a global batch of 1"});
  expect_says(run_program(dry + "model.rampup_batch_size=[1,2,8]"), 2, {"does not reach `model.global_batch_size`=4"});
  expect_says(run_program(dry + "model.rampup_batch_size=[1,2]"), 2, {"[start, increment, samples]"});
}

}  // namespace
}  // namespace megalith::cli::testing
