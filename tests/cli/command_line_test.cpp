#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>
#include <regex>
#include <sstream>

#include "repository.h"
#include "run_program.h"
#include "temp_dir.h"

namespace megalith::cli::testing {
namespace {

using ::megalith::testing::TempDir;

struct Refusal {
  std::string arguments;
  std::string said;
};

void expect_refused(const std::vector<Refusal>& cases, const std::string& directory = ".") {
  for (const Refusal& refusal : cases) {
    const Outcome outcome = run_program(refusal.arguments, directory);
    EXPECT_EQ(outcome.exit_code, 2) << refusal.arguments << "\n" << outcome.output;
    EXPECT_NE(outcome.output.find(refusal.said), std::string::npos)
        << refusal.arguments << " does not say '" << refusal.said << "'\n"
        << outcome.output;
    EXPECT_LT(outcome.output.size(), 500u) << refusal.arguments << "\n" << outcome.output;
  }
}

TEST(CommandLine, AnUnknownVerbIsNamedAtEveryLevel) {
  expect_refused({{"trian", "megalith: unknown verb 'trian'; did you mean 'train'?\n"},
                  {"eval --checkpoint x", "unknown verb 'eval'; did you mean 'evaluate'?"},
                  {"data prepair --input x", "unknown verb 'prepair' of 'data'; did you mean 'prepare'?"},
                  {"report foo", "unknown verb 'foo' of 'report'; there are training, goodput, run"}});
}

TEST(CommandLine, WithoutAVerbTheyAreListed) {
  for (const char* arguments : {"", "data", "report"}) {
    const Outcome outcome = run_program(arguments);
    EXPECT_EQ(outcome.exit_code, 2) << arguments;
    EXPECT_NE(outcome.output.find("\nVerbs:\n"), std::string::npos) << outcome.output;
  }
  const Outcome outcome = run_program("");
  EXPECT_NE(outcome.output.find("  train                       Train a model, or continue training it\n"),
            std::string::npos)
      << outcome.output;
}

TEST(CommandLine, NumbersAreRefusedInPlainWords) {
  expect_refused({{"generate --checkpoint x --temperature -1", "--temperature"},
                  {"generate --checkpoint x --temperature nan", "--temperature"},
                  {"generate --checkpoint x --temperature warm", "--temperature must be a number, not warm\n"},
                  {"generate --checkpoint x --max-tokens 1.5", "--max-tokens must be a whole number, not 1.5\n"},
                  {"watch x --interval nan", "--interval must be 0.05 to 3600, not nan\n"},
                  {"bench comm --seconds -1", "--seconds must be above 0, not -1\n"},
                  {"generate --checkpoint x --seed -1", "--seed must be at least 0, not -1\n"},
                  {"data prepare --workers 0", "--workers must be 1 to 4096, not 0\n"},
                  {"data prepare --workers 100000", "--workers must be 1 to 4096, not 100000\n"},
                  {"data check x --workers -3", "--workers must be 0 to 4096, not -3\n"},
                  {"report training --batch_size 0", "--batch_size must be at least 1, not 0\n"},
                  {"report goodput --reference-step-time -1", "--reference-step-time must be above 0, not -1\n"},
                  {"bench checkpoint --size much", "--size must be a size such as 500MB, 8GiB or 1000000, not much\n"},
                  {"bench checkpoint --size -5", "--size must be a size such as 500MB, 8GiB or 1000000, not -5\n"},
                  {"train --nproc 0", "--nproc must be 1 to 4096, not 0\n"}});
}

TEST(CommandLine, NamesAreRefusedWithThoseThatAreKnown) {
  expect_refused(
      {{"evaluate --checkpoint x --split foo", "train, valid or test"},
       {"data extract --input x --output-dir y --on-error explode", "--on-error must be fail or skip, not 'explode'\n"},
       {"data tokenize --bad-text 1", "--bad-text must be reject or replace, not '1'\n"},
       {"data encode --tokenizer-type Foo x", "HuggingFaceTokenizer or TikTokenizer, not 'Foo'\n"}});
}

TEST(CommandLine, WhatIsMissingOrTooMuchIsSaid) {
  expect_refused(
      {{"train --nprocs 8", "unknown option '--nprocs'; did you mean '--nproc'?\nsee megalith train --help\n"},
       {"--verison", "unknown option '--verison'; did you mean '--version'?"},
       {"generate --promt x", "unknown option '--promt'; did you mean '--prompt'?"},
       {"generate --checkpoint x --prompt", "--prompt needs a value\n"},
       {"generate --checkpoint x --checkpoint y", "--checkpoint takes one value and was given 2\n"},
       {"generate", "--checkpoint is required\nsee megalith generate --help\n"},
       {"train --rank 3", "--rank needs --dry-run\n"},
       {"watch one two", "'two' was not expected\n"},
       {"data prepare --output-prefix x --shards 2 --files-per-shard 3",
        "--shards cannot be given together with --files-per-shard\n"}});
}

std::vector<std::string> verbs_below(const std::string& verb) {
  const std::string text = run_program(verb + " --help").output;
  std::vector<std::string> verbs{verb};
  const size_t list = text.find("\nVerbs:\n");
  if (list == std::string::npos) return verbs;
  const std::string lines = text.substr(list);
  const std::regex name("\n  ([a-z-]+)  ");
  for (std::sregex_iterator it(lines.begin(), lines.end(), name), end; it != end; ++it) {
    const auto below = verbs_below(verb + " " + (*it)[1].str());
    verbs.insert(verbs.end(), below.begin(), below.end());
  }
  return verbs;
}

// An option that is checked by something else than cli/accepts.h shows up here.
TEST(CommandLine, HelpSpeaksToPeople) {
  const std::vector<std::string> verbs = verbs_below("");
  EXPECT_GE(verbs.size(), 32u);
  const std::regex library_words(
      "\\b(INT|UINT|FLOAT|ENUM|POSITIVE|NONNEGATIVE|BOOLEAN|SUBCOMMAND|REQUIRED)\\b|->|value in");
  for (const std::string& verb : verbs) {
    const std::string text = run_program(verb + " --help").output;
    std::smatch found;
    EXPECT_FALSE(std::regex_search(text, found, library_words)) << verb << " says " << found.str() << "\n" << text;
    std::istringstream lines(text.substr(text.find("\nUsage:")));
    for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 90u) << verb << "\n" << line;
  }
  const std::string evaluate = run_program("evaluate --help").output;
  EXPECT_NE(evaluate.find("default: valid"), std::string::npos) << evaluate;
  const std::string prepare = run_program("data prepare --help").output;
  EXPECT_NE(prepare.find("--on-error fail|skip"), std::string::npos) << prepare;
}

TEST(CommandLine, PathsThatCannotBeUsedAreNamedInPlainWords) {
  const TempDir dir;
  const std::string path = dir.path().string();
  std::ofstream(dir / "file") << "x";
  ASSERT_EQ(run_program("train trainer.max_steps=1 trainer.accelerator=cpu model.micro_batch_size=1 "
                        "model.global_batch_size=1 model.encoder_seq_length=8 model.num_layers=1 model.hidden_size=8 "
                        "model.num_attention_heads=2 model.data.data_impl=mock exp_manager.explicit_log_dir=run",
                        path)
                .exit_code,
            0);
  expect_refused({{"report run run --png file/pictures",
                   "the report cannot be made: cannot create directory file/pictures: Not a directory\n"},
                  {"report run run -o nowhere/page.html", "there is no folder nowhere; make it first\n"},
                  {"report goodput run --export nowhere/x.json", "there is no folder nowhere; make it first\n"},
                  {"bench step --csv nowhere/x.csv", "there is no folder nowhere; make it first\n"},
                  {"bench data --text nowhere.txt", "--text nowhere.txt: there is no such file\n"}},
                 path);
}

TEST(CommandLine, WhatMayNotBeReadIsNamedInPlainWords) {
  const TempDir dir;
  const std::string path = dir.path().string();
  std::ofstream(dir / "recipe.yaml") << "name: x\n";
  std::filesystem::create_directories(dir / "run/checkpoints");
  std::filesystem::permissions(dir / "recipe.yaml", std::filesystem::perms::none);
  std::filesystem::permissions(dir / "run", std::filesystem::perms::none);
  std::filesystem::permissions(dir.path(), std::filesystem::perms::all);
  // Root may read everything.
  const std::string as_nobody = ::geteuid() == 0 ? "setpriv --reuid=65534 --regid=65534 --clear-groups" : "";
  if (run_program("--version", path, as_nobody).exit_code != 0) GTEST_SKIP() << "nobody may start the program here";
  for (const auto& [arguments, said] : std::vector<Refusal>{
           {"train --dry-run -c recipe.yaml", "config file: cannot open recipe.yaml: Permission denied\n"},
           {"train --dry-run -c run/recipe.yaml", "no config file 'run/recipe.yaml': Permission denied\n"},
           {"watch run --once", "run/events.jsonl cannot be read: Permission denied\n"},
           {"checkpoint verify run", "cannot read run/checkpoints: Permission denied\n"}}) {
    const Outcome outcome = run_program(arguments, path, as_nobody);
    EXPECT_EQ(outcome.exit_code, 2) << arguments << "\n" << outcome.output;
    EXPECT_EQ(outcome.output, "megalith: " + said) << arguments;
  }
  std::filesystem::permissions(dir / "run", std::filesystem::perms::all);
}

// Types `words` and presses the tabulator key.
std::string complete(const std::string& words) {
  const TempDir dir;
  {
    std::ofstream script(dir / "complete.sh");
    script << "eval \"$(" << MEGALITH_PROGRAM << " completion bash)\"\ncompopt() { :; }\n"
           << "COMP_WORDS=(megalith " << words << ")\nCOMP_CWORD=$((${#COMP_WORDS[@]} - 1))\n"
           << "_megalith\necho \"${COMPREPLY[*]}\"\n";
  }
  FILE* pipe = popen(("bash " + (dir / "complete.sh").string() + " 2>&1").c_str(), "r");
  std::array<char, 65536> buffer{};
  const size_t count = fread(buffer.data(), 1, buffer.size(), pipe);
  EXPECT_EQ(pclose(pipe), 0);
  return {buffer.data(), count};
}

TEST(CommandLine, BashCompletesVerbsOptionsValuesAndKeys) {
  EXPECT_EQ(complete("tr"), "train\n");
  EXPECT_EQ(complete("data pre"), "prepare\n");
  EXPECT_EQ(complete("generate --tem"), "--temperature\n");
  EXPECT_EQ(complete("evaluate --split ''"), "train valid test\n");
  EXPECT_EQ(complete("train trainer.max_s"), "trainer.max_steps=\n");
  EXPECT_EQ(complete("train -c recipes/d"), "\n");  // left to the shell: a file
}

}  // namespace
}  // namespace megalith::cli::testing
