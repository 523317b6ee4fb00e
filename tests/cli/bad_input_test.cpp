#include <gtest/gtest.h>

#include <fstream>

#include "core/process/exit_codes.h"
#include "run_program.h"
#include "temp_dir.h"

namespace megalith::cli::testing {
namespace {

using ::megalith::testing::TempDir;

constexpr const char* kTiny =
    "train trainer.max_steps=3 trainer.accelerator=cpu model.micro_batch_size=1 model.global_batch_size=2 "
    "model.encoder_seq_length=8 model.num_layers=1 model.hidden_size=8 model.num_attention_heads=2 "
    "exp_manager.explicit_log_dir=run ";

struct Case {
  const char* what;
  std::string arguments;
  int exit_code;
  std::vector<std::string> said;  // all of it in the message
};

class BadInput : public ::testing::Test {
 protected:
  BadInput() {
    std::ofstream(dir_ / "text.txt")
        << "In the beginning was the word, and the word was short.\n\nThe end came soon.\n";
    EXPECT_EQ(run_program("data tokenize --input text.txt --output-prefix good --append-eod --split-paragraphs", path())
                  .exit_code,
              0);
    for (const char* name : {"truncated", "foreign"}) {
      for (const char* suffix : {".bin", ".idx"}) {
        std::filesystem::copy_file(dir_ / (std::string("good_text_document") + suffix),
                                   dir_ / (std::string(name) + suffix));
      }
    }
    std::filesystem::resize_file(dir_ / "truncated.bin", 40);
    std::ofstream(dir_ / "foreign.idx") << "PNG or something";
  }

  std::string path() const { return dir_.path().string(); }

  TempDir dir_;
};

TEST_F(BadInput, GetsOneClearMessageAndTheRightExitCode) {
  const std::string tiny = kTiny;
  const std::string mock = tiny + "model.data.data_impl=mock ";
  const auto data = [&](const char* prefix) {
    return tiny + "model.data.data_impl=mmap model.data.splits_string=1,0,0 model.data.data_prefix=[" + prefix + "] ";
  };
  const std::string pipeline =
      "bench step trainer.accelerator=cpu trainer.devices=8 model.micro_batch_size=1 model.global_batch_size=8 "
      "model.encoder_seq_length=8 model.num_layers=4 model.hidden_size=8 model.num_attention_heads=2 "
      "model.pipeline_model_parallel_size=4 ";
  const std::string heading = "ranks,machines,operation,bytes,microseconds\n";
  std::ofstream(dir_ / "dead.csv") << heading << "8,1,all_gather,1024,0\n";
  std::ofstream(dir_ / "other.csv") << "a,b\n1,2\n";
  std::ofstream(dir_ / "near.csv") << heading << "4,1,all_gather,1024,10\n";
  const std::vector<Case> cases{
      {"unknown verb", "trian", 2, {}},
      {"unknown key", mock + "trainer.max_step=5", 2, {"trainer.max_step", "trainer.max_steps"}},
      {"wrong type", mock + "trainer.max_steps=many", 2, {"trainer.max_steps", "many"}},
      {"missing recipe", "train -c nowhere.yaml", 2, {"nowhere.yaml"}},
      {"heads do not divide", mock + "model.num_attention_heads=3", 2, {"model.num_attention_heads"}},
      {"batch is no multiple",
       mock + "model.micro_batch_size=2 model.global_batch_size=3",
       2,
       {"model.global_batch_size"}},
      {"fp16", mock + "trainer.precision=16", 2, {"bf16"}},
      {"missing data", data("missing_text_document"), 2, {"missing_text_document"}},
      {"truncated data", data("truncated"), 2, {"truncated.bin"}},
      {"foreign data", data("foreign"), 2, {"foreign.idx"}},
      {"id beyond the vocabulary",
       data("good_text_document") + "model.tokenizer.type=HuggingFaceTokenizer model.tokenizer.vocab_size=100",
       2,
       {"good_text_document", "100"}},
      {"run directory under a file", mock + "exp_manager.explicit_log_dir=text.txt/run", 2, {"text.txt/run"}},
      {"full disk", mock + "resilience.failpoints=[checkpoint.before_manifest=io]", kExitIo, {"checkpoint"}},
      {"no such checkpoint", "generate --checkpoint nowhere", 2, {"nowhere"}},
      {"rank outside of the layout", pipeline + "--as-rank 8 --wire h100", 2, {"--as-rank '8'", "ranks 0 to 7"}},
      {"no such stage", pipeline + "--as-rank first,end --wire h100", 2, {"'end'", "first, middle, last"}},
      {"no such wire", pipeline + "--as-rank first --wire string", 2, {"no accelerator 'string'", "h100"}},
      {"no such network", pipeline + "--as-rank first --wire h100+string", 2, {"no network 'string'"}},
      {"a wire that is no file of ours", pipeline + "--as-rank first --wire text.txt", 2, {"text.txt, line 3"}},
      {"another table", pipeline + "--as-rank first --wire other.csv", 2, {"other.csv", "megalith bench comm --csv"}},
      {"a wire without bandwidth", pipeline + "--as-rank first --wire dead.csv", 2, {"dead.csv, line 2"}},
      {"a wire without a link", pipeline + "--as-rank first --wire near.csv", 2, {"no link between machines"}},
      {"a rank on the CPU", pipeline + "--as-rank first --wire h100", 2, {"on a GPU"}},
      {"rates of a rank on the CPU", pipeline + "--as-rank first --wire h100 --csv rates.csv", 2, {"on a GPU"}},
      {"rates of a rank into no folder", pipeline + "--as-rank first --wire h100 --csv none/rates.csv", 2, {"none"}},
      {"a rank without a wire", pipeline + "--as-rank first", 2, {"--as-rank", "--wire"}},
      {"a wire without a rank", pipeline + "--wire h100", 2, {"--wire", "--as-rank"}},
      {"training as a rank", mock + "--as-rank first --wire h100", 2, {"--as-rank"}},
      {"negative temperature", "generate --checkpoint run --temperature -1", 2, {"--temperature"}},
  };
  for (const Case& bad : cases) {
    std::filesystem::remove_all(dir_ / "run");
    const Outcome outcome = run_program(bad.arguments, path());
    EXPECT_EQ(outcome.exit_code, bad.exit_code) << bad.what << "\n" << outcome.output;
    for (const std::string& words : bad.said) {
      EXPECT_NE(outcome.output.find(words), std::string::npos) << bad.what << " does not say '" << words << "'\n"
                                                               << outcome.output;
    }
  }
}

TEST_F(BadInput, WhatAMonitorSaysIsChecked) {
  const std::string train = std::string(kTiny) + "model.data.data_impl=mock";
  const std::string good = "MEGALITH_NODE=a MEGALITH_RUN=0123456789abcdef MEGALITH_GENERATION=2 ";
  const std::vector<std::pair<std::string, std::vector<std::string>>> cases{
      {"MEGALITH_NODE=a MEGALITH_GENERATION=2", {"MEGALITH_RUN"}},
      {good, {"MEGALITH_LINEAGE"}},
      {good + "MEGALITH_LINEAGE=1:none", {"MEGALITH_GENERATION is 2", "MEGALITH_LINEAGE"}},
      {good + "MEGALITH_LINEAGE=2:none MEGALITH_HOLDERS_FILE=text.txt", {"text.txt", "0600"}}};
  for (const auto& [variables, words] : cases) {
    const Outcome outcome = run_program(train, path(), variables);
    EXPECT_EQ(outcome.exit_code, 2) << outcome.output;
    for (const std::string& word : words) EXPECT_NE(outcome.output.find(word), std::string::npos) << outcome.output;
    EXPECT_FALSE(std::filesystem::exists(dir_ / "run"));
  }
  std::filesystem::create_directories(dir_ / "run/control");
  std::ofstream(dir_ / "run/control/roster-000001.json") << "{}";
  const Outcome refused = run_program(train, path());
  EXPECT_EQ(refused.exit_code, 2) << refused.output;
  EXPECT_NE(refused.output.find("megalith supervise"), std::string::npos) << refused.output;
}

TEST_F(BadInput, ACorruptCheckpointIsNamed) {
  ASSERT_EQ(run_program(std::string(kTiny) + "model.data.data_impl=mock", path()).exit_code, 0);
  {
    std::fstream manifest(dir_ / "run/checkpoints/step-00000003/manifest.json", std::ios::in | std::ios::out);
    manifest.seekp(100);
    manifest.put('~');
  }
  const Outcome named = run_program("evaluate --checkpoint run/checkpoints/step-00000003", path());
  EXPECT_EQ(named.exit_code, 2) << named.output;
  EXPECT_NE(named.output.find("manifest.json"), std::string::npos) << named.output;
  const Outcome searched = run_program("generate --checkpoint run", path());
  EXPECT_EQ(searched.exit_code, 2) << searched.output;
}

}  // namespace
}  // namespace megalith::cli::testing
