#include <gtest/gtest.h>

#include <chrono>
#include <fstream>
#include <regex>
#include <thread>

#include "core/file.h"
#include "core/process/exit_codes.h"
#include "repository.h"
#include "run_program.h"
#include "temp_dir.h"

namespace megalith::cli::testing {
namespace {

using ::megalith::testing::TempDir;

// What a user sees when a run starts, is refused, or ends.
class Start : public ::testing::Test {
 protected:
  static constexpr const char* kModel =
      "train trainer.max_steps=2 trainer.accelerator=cpu trainer.cpu_threads=1 model.micro_batch_size=1 "
      "model.global_batch_size=2 model.encoder_seq_length=8 model.num_layers=1 model.hidden_size=8 "
      "model.num_attention_heads=2 exp_manager.explicit_log_dir=run ";
  static std::string mock(const std::string& more = "") { return kModel + ("model.data.data_impl=mock " + more); }
  static std::string data(const std::string& prefix, const std::string& more = "") {
    return kModel + ("model.data.splits_string=1,0,0 model.data.data_prefix=[" + prefix + "] " + more);
  }

  void make_data(const std::string& name, const std::string& text) const {
    std::ofstream(dir_ / (name + ".txt")) << text;
    const Outcome made = run("data tokenize --input " + name + ".txt --output-prefix " + name + " --append-eod");
    ASSERT_EQ(made.exit_code, 0) << made.output;
  }
  Outcome run(const std::string& arguments) const { return run_program(arguments, dir_.path().string()); }
  void expect(const Outcome& outcome, int exit_code, const std::vector<std::string>& words) const {
    EXPECT_EQ(outcome.exit_code, exit_code) << outcome.output;
    for (const std::string& word : words) EXPECT_TRUE(holds(outcome.output, word)) << word << "\n" << outcome.output;
  }
  static bool holds(const std::string& text, const std::string& words) { return text.find(words) != std::string::npos; }
  std::string text_of(const std::string& file) const { return read_text(dir_ / file); }

  TempDir dir_;
};

TEST_F(Start, ATokenizerFileThatWasGivenMustBeThere) {
  const std::string gpt2 = mock("model.tokenizer.type=GPT2BPETokenizer ");
  expect(run(gpt2 + "model.tokenizer.vocab_file=nope.json model.tokenizer.merge_file=nope.txt"), 2,
         {"cannot open nope.json (model.tokenizer.vocab_file)", "cannot open nope.txt"});
  expect(run(gpt2 + "model.tokenizer.merge_file=nope.txt"), 2, {"cannot open nope.txt", "vocab_file is not given"});
  expect(run(mock("model.tokenizer.type=HuggingFaceTokenizer model.tokenizer.model=nope.json")), 2,
         {"cannot open nope.json"});
  expect(run("train -c " + in_repository("recipes/demo.yaml").string()), 2,
         {"cannot open data/demo-tokenizer/vocab.json", "run scripts/demo"});
  EXPECT_EQ(run("train --nproc 2 -c " + in_repository("recipes/demo.yaml").string()).exit_code, 2);
  EXPECT_FALSE(std::filesystem::exists(dir_ / "run"));
  EXPECT_FALSE(std::filesystem::exists(dir_ / "runs"));

  ASSERT_EQ(run(gpt2 + "model.tokenizer.vocab_size=50257").exit_code, 0) << "no file at all means GPT-2's size";
  expect(run("evaluate --checkpoint run --batches 1 model.tokenizer.vocab_file=nope.json"), 2,
         {"cannot open nope.json"});
}

TEST_F(Start, MadeUpTokensAreAnnouncedEverywhere) {
  const std::string words = "made-up tokens: give model.data.data_prefix";
  const Outcome trained = run(mock());
  EXPECT_EQ(trained.exit_code, 0) << trained.output;
  const size_t warned = trained.output.find("[Megalith W");
  ASSERT_NE(warned, std::string::npos) << trained.output;
  EXPECT_TRUE(holds(trained.output.substr(warned, 120), words)) << trained.output;
  EXPECT_TRUE(holds(trained.output.substr(trained.output.find("done:")), "  data             " + words))
      << trained.output;
  EXPECT_TRUE(holds(text_of("run/report.html"), words));
  expect(run("watch run --once"), 0, {words});

  make_data("cats", "cats and dogs\n");
  const Outcome real = run(data("cats_text_document", "exp_manager.explicit_log_dir=real"));
  EXPECT_EQ(real.exit_code, 0) << real.output;
  EXPECT_FALSE(holds(real.output + text_of("real/report.html") + run("watch real --once").output, "made-up"));
}

TEST_F(Start, ARunKeepsItsDataUnlessToldOtherwise) {
  make_data("cats", "cats sit on mats\n");
  make_data("dogs", "dogs run on logs\n");  // of the same shape
  const std::string resume = "exp_manager.resume_if_exists=true trainer.max_steps=";
  ASSERT_EQ(run(mock()).exit_code, 0);
  expect(run(data("cats_text_document", resume + "3")), 2,
         {"data_impl from mock to mmap", "data_prefix from [] to [cats_text_document]", "--resume-with-other-data"});
  expect(run(data("cats_text_document", resume + "3 --resume-with-other-data")), 0,
         {"[Megalith W", "data_impl from mock to mmap", "done: 3 steps"});
  expect(run(data("cats_text_document", resume + "4")), 0, {"done: 4 steps, 1 of them in this start: 16 tokens in"});
  expect(run(data("dogs_text_document", resume + "5")), 2,
         {"data_prefix from [cats_text_document] to [dogs_text_document]"});
  expect(run(data("cats_text_document", resume + "5 model.data.splits_string=9,1,0")), 2,
         {"splits_string from 1,0,0 to 9,1,0"});

  std::filesystem::create_directory(dir_ / "moved");
  for (const char* ending : {".bin", ".idx"})
    std::filesystem::rename(dir_ / (std::string("cats_text_document") + ending),
                            dir_ / (std::string("moved/felines") + ending));
  expect(run(data("moved/felines", resume + "5")), 0, {"done: 5 steps"});
  make_data("moved/felines", "cats\n");
  std::filesystem::rename(dir_ / "moved/felines_text_document.bin", dir_ / "moved/felines.bin");
  std::filesystem::rename(dir_ / "moved/felines_text_document.idx", dir_ / "moved/felines.idx");
  expect(run(data("moved/felines", resume + "6")), 2, {"[moved/felines], whose files are not those of the checkpoint"});
}

TEST_F(Start, AModelThatDoesNotFitThisMachineIsRefused) {
  // 2 TB of state.
  const std::string huge = mock("model.num_layers=96 model.hidden_size=12288 model.num_attention_heads=96 ");
  const std::vector<std::string> words{"the model needs", "are free", "weights", "a smaller model"};
  expect(run(huge), 2, words);
  expect(run(huge + "--nproc 2 model.tensor_model_parallel_size=2"), 2,
         {"the model needs", "for each of the 2 ranks here", "a smaller model"});
  EXPECT_FALSE(std::filesystem::exists(dir_ / "run"));
  expect(run(huge + "--compile-only"), 0, {"Total graphs: 0"});
}

TEST_F(Start, AReportThatCannotBeWrittenIsAWarning) {
  std::filesystem::create_directories(dir_ / "run/report.html.part");
  std::ofstream(dir_ / "run/.megalith.lock") << "";
  const Outcome outcome = run(mock());
  expect(outcome, 0, {"no report:", "report.html", "done: 2 steps"});
  EXPECT_TRUE(std::filesystem::exists(dir_ / "run/checkpoints/step-00000002/manifest.json"));
}

TEST_F(Start, AFailureIsInTheLogsTheReportAndTheEvents) {
  const std::string words = "the gradient of";
  expect(run(mock("model.optim.lr=1e30 model.optim.sched.name=constant trainer.max_steps=9")), kExitNonFinite, {words});
  for (const char* file : {"run/nemo_error_logs.txt", "run/nemo_log_globalrank-0_localrank-0.txt", "run/report.html",
                           "run/events.jsonl"}) {
    EXPECT_TRUE(holds(text_of(file), words)) << file;
  }
  EXPECT_TRUE(holds(text_of("run/events.jsonl"), "job_terminated"));
  expect(run("watch run --once"), 0, {"ended early", words});
}

TEST_F(Start, AFailureBeforeTheFirstStepEndsTheRunToo) {
  make_data("cats", "cats\n");
  expect(run(data("cats_text_document", "model.data.validation_files=-1")), 2, {"validation_files"});
  if (std::filesystem::exists(dir_ / "run/events.jsonl")) {
    EXPECT_TRUE(holds(text_of("run/events.jsonl"), "job_terminated"));
  }
  const std::string held = "exp_manager.explicit_log_dir=held model.data.validation_files=3 ";
  const std::string nothing_left = "validation_files=3 and test_files=0 leave nothing to train on";
  expect(run(data("cats_text_document", held)), 2, {nothing_left, "model.data.data_prefix has 1 dataset\n"});
  EXPECT_FALSE(std::filesystem::exists(dir_ / "held"));
  expect(run(data("cats_text_document", held + "--dry-run")), 0, {nothing_left});
  ASSERT_EQ(run(mock("exp_manager.explicit_log_dir=other")).exit_code, 0);
  expect(run(mock("exp_manager.explicit_log_dir=other exp_manager.resume_if_exists=true model.hidden_size=16")), 2,
         {"does not fit this config"});
  EXPECT_TRUE(holds(text_of("other/nemo_error_logs.txt"), "does not fit this config"));
  const std::string events = text_of("other/events.jsonl");
  EXPECT_GT(events.rfind("job_terminated"), events.rfind("job_started"));
}

TEST_F(Start, ADryRunListsWhatIsMissing) {
  const std::string missing = data("nowhere/text", "model.tokenizer.vocab_file=nope.json --dry-run ");
  expect(run(missing), 0, {" MiB\n[Megalith W", "cannot open nope.json", "dataset nowhere/text not found", "total"});
  expect(run(missing + "--require-files"), 2, {"cannot open nope.json"});
  expect(run(data("nowhere/text", "--dry-run --require-files")), 2, {"dataset nowhere/text not found"});
  expect(run(data("nowhere/text")), 2, {"dataset nowhere/text not found"});
  expect(run(mock("--dry-run --require-files")), 0, {"parameters"});
}

TEST_F(Start, ADryRunOpensTheDataThatIsThere) {
  make_data("cats", "cats and dogs\n");
  expect(run("data train-tokenizer --input cats.txt --vocab-size 260 --output-dir other"), 0, {});
  const std::string other =
      "model.tokenizer.type=GPT2BPETokenizer model.tokenizer.vocab_file=other/vocab.json "
      "model.tokenizer.merge_file=other/merges.txt --dry-run ";
  const std::string made_with = "cats_text_document was made with ByteTokenizer";
  expect(run(data("cats_text_document", other)), 0, {"[Megalith W", made_with});
  expect(run(data("cats_text_document", other + "--require-files")), 2, {made_with});
  std::filesystem::resize_file(dir_ / "cats_text_document.bin", 6);
  const std::string truncated = "cats_text_document.bin is truncated";
  expect(run(data("cats_text_document", "--dry-run")), 0, {"[Megalith W", truncated, "total"});
  expect(run(data("cats_text_document", "--dry-run --require-files")), 2, {truncated});
}

TEST_F(Start, TheConfigIsShownAsASummary) {
  const Outcome outcome = run(mock());
  const std::string shown = outcome.output.substr(0, outcome.output.find("parameters "));
  EXPECT_LE(std::count(shown.begin(), shown.end(), '\n'), 20) << shown;
  for (const char* words :
       {"run              megalith in run", "1 layer, width 8, 2 heads", "2 samples of 8 tokens a step",
        "ByteTokenizer, 257 ids", "precision        32", "adamw, weight decay 0.1",
        "learning rate    0.0003, CosineAnnealing over 2 steps", "steps            2, no validation",
        "checkpoints      run/checkpoints, only at the end", "1 rank on the CPU\n"}) {
    EXPECT_TRUE(holds(shown, words)) << words << "\n" << shown;
  }
  const Outcome elsewhere =
      run(mock("exp_manager.explicit_log_dir=other exp_manager.checkpoint_callback_params.dirpath=saved "
               "exp_manager.checkpoint_callback_params.train_time_interval=10m"));
  expect(elsewhere, 0, {"checkpoints      saved, every 10m\n", "checkpoints      saved\n"});
  for (const char* words : {"making the initial weights", "step 0 begins"})
    EXPECT_TRUE(holds(outcome.output, words)) << outcome.output;
  EXPECT_TRUE(holds(text_of("run/hparams.yaml"), "init_method_std"));
  const Outcome printed = run(mock("--print-config"));
  EXPECT_EQ(printed.exit_code, 0);
  EXPECT_TRUE(printed.output.starts_with("config_version: 2\nname: megalith\n")) << printed.output;
  EXPECT_TRUE(holds(printed.output, "init_method_std"));
}

TEST_F(Start, ARecipeComesAfterItsFlag) {
  expect(run("train"), 2, {"give a recipe with -c"});
  expect(run("train trainer.max_steps=3"), 2, {"give a recipe with -c"});
  expect(run("train recipes/demo.yaml"), 2, {"give a recipe with -c, as in -c recipes/demo.yaml"});
  std::ofstream(dir_ / "a.yaml") << "trainer: {max_steps: 7, devices: 1}\n";
  std::ofstream(dir_ / "b.yaml") << "trainer: {max_steps: 8}\n";
  expect(run("train -c a.yaml b.yaml"), 2, {"as in -c b.yaml"});
  expect(run("train -c a.yaml -c b.yaml --print-config"), 0, {"max_steps: 8"});
  const Outcome help = run("train --help");
  EXPECT_TRUE(holds(help.output, "-c,--config FILE")) << help.output;
  EXPECT_FALSE(std::regex_search(help.output, std::regex("--config FILE[^\n]*\\.\\.\\."))) << help.output;
}

TEST_F(Start, ADirectoryInUseNamesItsUser) {
  const Outcome outcome =
      run(mock("trainer.max_steps=200000 > out 2>&1 & holder=$!; until grep -qs 'step 0 begins' out; do sleep 0.05; "
               "done; echo holder $holder.; ") +
          std::string(MEGALITH_PROGRAM) + " " +
          mock("exp_manager.resume_if_exists=true 2>&1; code=$?; kill -9 $holder; exit $code"));
  std::smatch holder;
  ASSERT_TRUE(std::regex_search(outcome.output, holder, std::regex("holder ([0-9]+)\\."))) << outcome.output;
  expect(outcome, 2, {"run is in use by process " + holder[1].str() + " on "});
}

TEST_F(Start, NumbersThatSayNothingAreLeftOut) {
  const Outcome outcome = run(mock("trainer.max_steps=1 model.make_vocab_size_divisible_by=1"));
  expect(outcome, 0, {"done: 1 step,"});
  EXPECT_FALSE(holds(outcome.output, "padded")) << outcome.output;
  EXPECT_FALSE(holds(outcome.output, "master weights")) << outcome.output;
}

}  // namespace
}  // namespace megalith::cli::testing
