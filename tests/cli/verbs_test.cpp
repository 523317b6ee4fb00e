#include <gtest/gtest.h>
#include <signal.h>

#include <fstream>

#include "repository.h"
#include "run_program.h"
#include "temp_dir.h"

namespace megalith::cli::testing {
namespace {

using ::megalith::testing::TempDir;

constexpr const char* kModel =
    "trainer.accelerator=cpu model.micro_batch_size=2 model.global_batch_size=2 model.encoder_seq_length=16 "
    "model.num_layers=1 model.hidden_size=16 model.num_attention_heads=2 ";

TEST(Verbs, TextBecomesAModelThatWrites) {
  const TempDir dir;
  const std::string path = dir.path().string();
  {
    std::ofstream text(dir / "text.txt");
    for (int i = 0; i < 200; ++i) text << "the cat sat on the mat, and the dog sat on the cat\n\n";
  }
  Outcome outcome =
      run_program("data tokenize --input text.txt --output-prefix cats --append-eod --split-paragraphs", path);
  ASSERT_EQ(outcome.exit_code, 0) << outcome.output;
  outcome = run_program("data check cats_text_document --from-source --tokenizer-type ByteTokenizer", path);
  EXPECT_EQ(outcome.exit_code, 0) << outcome.output;
  EXPECT_NE(outcome.output.find("documents encoded again"), std::string::npos) << outcome.output;
  outcome = run_program(
      std::string("train ") + kModel +
          "trainer.max_steps=30 trainer.val_check_interval=15 trainer.limit_val_batches=2 model.optim.lr=0.01 "
          "model.data.data_impl=mmap model.data.data_prefix=[cats_text_document] model.data.splits_string=90,10,0 "
          "exp_manager.explicit_log_dir=run",
      path);
  ASSERT_EQ(outcome.exit_code, 0) << outcome.output;
  // At the start the config, the parameter count and the memory table; at the end where things are.
  for (const char* words :
       {"steps            30", "parameters ", "activations ", "30/30", "val_loss=", "tokens/s", "run/report.html"}) {
    EXPECT_NE(outcome.output.find(words), std::string::npos) << words << "\n" << outcome.output;
  }
  outcome = run_program("evaluate --checkpoint run --trigram", path);
  EXPECT_EQ(outcome.exit_code, 0) << outcome.output;
  EXPECT_NE(outcome.output.find("bits per byte"), std::string::npos);
  outcome = run_program("generate --checkpoint run/checkpoints --prompt 'the c' --max-tokens 20 --greedy", path);
  EXPECT_EQ(outcome.exit_code, 0) << outcome.output;
  EXPECT_NE(outcome.output.find("the c"), std::string::npos);
  EXPECT_EQ(run_program("checkpoint verify run", path).exit_code, 0);
  outcome = run_program("checkpoint inspect run", path);
  EXPECT_NE(outcome.output.find("layers.0.attention.qkv.weight"), std::string::npos) << outcome.output;
}

TEST(Verbs, SigtermSavesAndAsksToBeRunAgain) {
  const TempDir dir;
  const std::string path = dir.path().string();
  const std::string train = std::string("train ") + kModel +
                            "trainer.max_steps=6 model.data.data_impl=mock exp_manager.explicit_log_dir=run "
                            "exp_manager.resume_if_exists=true ";
  Outcome outcome = run_program(train + "resilience.failpoints=[train.step=sigterm@2]", path);
  EXPECT_EQ(outcome.exit_code, 75) << outcome.output;
  outcome = run_program(train, path);
  EXPECT_EQ(outcome.exit_code, 0) << outcome.output;
  EXPECT_NE(outcome.output.find("resuming from run/checkpoints/step-00000002"), std::string::npos) << outcome.output;
  // Complete: a further run has nothing to do.
  EXPECT_EQ(run_program(train, path).exit_code, 0);
}

TEST(Verbs, DryRunOfEveryRecipeAllocatesNothing) {
  int recipes = 0;
  for (const auto& entry : std::filesystem::directory_iterator(in_repository("recipes"))) {
    if (entry.is_directory()) continue;  // of cluster profiles
    const Outcome outcome = run_program("train --dry-run -c " + entry.path().string());
    EXPECT_EQ(outcome.exit_code, 0) << entry.path() << "\n" << outcome.output;
    EXPECT_NE(outcome.output.find("FLOPs per sample"), std::string::npos);
    ++recipes;
  }
  EXPECT_GE(recipes, 17);
}

TEST(Verbs, EveryVerbHasHelpWithAnExample) {
  for (const char* verb : {"train",
                           "generate",
                           "evaluate",
                           "data download",
                           "data prepare",
                           "data extract",
                           "data concat",
                           "data tokenize",
                           "data merge",
                           "data check",
                           "data info",
                           "data index",
                           "data encode",
                           "data decode",
                           "data train-tokenizer",
                           "checkpoint inspect",
                           "checkpoint verify",
                           "checkpoint convert",
                           "report run",
                           "watch",
                           "report training",
                           "report goodput",
                           "bench checkpoint",
                           "bench step",
                           "bench comm",
                           "bench data"}) {
    const Outcome outcome = run_program(std::string(verb) + " --help");
    EXPECT_EQ(outcome.exit_code, 0);
    EXPECT_NE(outcome.output.find("  megalith "), std::string::npos) << verb;
  }
}

}  // namespace
}  // namespace megalith::cli::testing
