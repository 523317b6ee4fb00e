#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "run_program.h"
#include "temp_dir.h"

// What a user sees of generate, evaluate --input and checkpoint convert.
namespace megalith::cli::testing {
namespace {

namespace fs = std::filesystem;
using ::megalith::testing::TempDir;

class Inference : public ::testing::Test {
 protected:
  // A Llama of bytes and a GPT-2 with a tokenizer of its own, both with a context of 16 tokens.
  static void SetUpTestSuite() {
    dir_.emplace();
    write("text.txt", "the cat sat on the mat\n\nand the dog sat on the cat, and the cat sat on the dog\n");
    const std::string model =
        "train trainer.accelerator=cpu trainer.cpu_threads=1 trainer.max_steps=2 model.micro_batch_size=2 "
        "model.global_batch_size=2 model.encoder_seq_length=16 model.num_layers=2 model.hidden_size=16 "
        "model.num_attention_heads=4 model.init_method_std=0.3 model.data.data_impl=mock ";
    run(model +
            "model.num_query_groups=2 model.position_embedding_type=rope model.normalization=rmsnorm "
            "model.activation=swiglu model.bias=false exp_manager.explicit_log_dir=llama",
        0);
    run("data train-tokenizer --input text.txt --output-dir tokenizer --vocab-size 270", 0);
    run(model +
            "model.tokenizer.type=GPT2BPETokenizer model.tokenizer.vocab_file=tokenizer/vocab.json "
            "model.tokenizer.merge_file=tokenizer/merges.txt exp_manager.explicit_log_dir=gpt",
        0);
  }
  static void TearDownTestSuite() { dir_.reset(); }

  // What the program says, after `before` ("printf x |").
  static std::string run(const std::string& arguments, int exit_code, const std::string& before = "") {
    const Outcome outcome = run_program(arguments, dir_->path().string(), before);
    EXPECT_EQ(outcome.exit_code, exit_code) << arguments << "\n" << outcome.output;
    return outcome.output;
  }
  static void expect_words(const std::string& said, const std::vector<std::string>& words) {
    for (const std::string& word : words) EXPECT_NE(said.find(word), std::string::npos) << word << "\n" << said;
  }
  static fs::path path(const std::string& name) { return *dir_ / name; }
  static void write(const std::string& name, const std::string& text) { std::ofstream(path(name)) << text; }
  static nlohmann::json json_of(const std::string& name) {
    return nlohmann::json::parse(std::ifstream(path(name)), nullptr, false);
  }
  // The JSON objects among the lines.
  static std::vector<nlohmann::json> objects_in(const std::string& said) {
    std::vector<nlohmann::json> objects;
    std::istringstream lines(said);
    for (std::string line; std::getline(lines, line);) {
      if (line.starts_with('{')) objects.push_back(nlohmann::json::parse(line));
    }
    return objects;
  }

  static std::optional<TempDir> dir_;
};
std::optional<TempDir> Inference::dir_;

TEST_F(Inference, KeysThatDoNotFitTheCheckpointAreRefusedByEveryVerb) {
  for (const char* key : {"model.num_layers=1", "model.num_layers=3", "model.ffn_hidden_size=80",
                          "model.num_attention_heads=2 model.num_query_groups=1"}) {  // of the same shapes
    for (const char* verb :
         {"generate --prompt And --checkpoint llama ", "evaluate --checkpoint llama --input text.txt ",
          "evaluate --checkpoint llama ", "checkpoint convert llama --to hugging-face --output never "}) {
      expect_words(run(std::string(verb) + key, 2), {"does not fit this config"});
    }
  }
  EXPECT_FALSE(fs::exists(path("never")));
}

TEST_F(Inference, WhatCannotBeUsedIsRefusedInPlainWords) {
  write("there", "");
  write("broken.jsonl", "{\"prompt\": \"a\"}\n{\"question\": \"b\"}\n");
  write("blank.txt", "\n  \n");
  write("latin.txt", "ok\ncaf\xe9\n");
  run("checkpoint convert llama --to hugging-face --output refused-hf", 0);
  struct Case {
    std::string arguments;
    std::vector<std::string> said;
  };
  const std::string generate = "generate --checkpoint llama ";
  const std::vector<Case> cases{
      {generate + "--prompt a --temperature nan", {"--temperature must be at least 0, not nan"}},
      {generate + "--prompt a --temperature -1", {"--temperature must be at least 0, not -1"}},
      {generate + "--prompt a --top-p 0", {"--top-p is 0: give a number above 0"}},
      {generate + "--prompt a --top-k -1", {"--top-k must be at least 0, not -1"}},
      {generate + "--prompt a --repetition-penalty 0", {"--repetition-penalty must be above 0, not 0"}},
      {generate + "--prompt a --stop ''", {"--stop is empty"}},
      {generate + "--prompt a --logits there", {"there is there already", "nothing is overwritten"}},
      {generate + "--logits new", {"give --prompt"}},
      {generate + "--prompt 'much more than sixteen bytes'",
       {"the prompt has 28 tokens, the model reads 16 at once", "much more than"}},
      {generate + "--prompts-file nowhere.txt", {"nowhere.txt"}},
      {generate + "--prompts-file /dev/zero", {"/dev/zero: it is no file", "standard input"}},
      {generate + "--prompts-file blank.txt", {"blank.txt holds no prompt"}},
      {generate + "--prompts-file latin.txt", {"latin.txt:2: byte 6: invalid UTF-8"}},
      {generate + "--prompts-file broken.jsonl", {"broken.jsonl:2", "\"prompt\""}},
      {generate + "</dev/null", {"standard input holds no prompt", "--prompt ''"}},
      {"generate --prompt a --checkpoint refused-hf",
       {"refused-hf is a Hugging Face directory", "checkpoint convert refused-hf --to megalith"}},
      {"checkpoint convert llama --to megalith --output never",
       {"llama is no Hugging Face directory", "config.json", "--to hugging-face"}},
      {"evaluate --checkpoint llama --split tests", {"--split must be train, valid or test"}},
      {"evaluate --checkpoint llama --input text.txt --stride 17", {"--stride is 17: give 1 to 16"}},
      {"evaluate --checkpoint llama --input text.txt --bos", {"--bos"}},
      {"evaluate --checkpoint llama --input nowhere.txt", {"nowhere.txt"}},
      {"evaluate --checkpoint llama --input broken.jsonl", {"broken.jsonl:1", "text"}},
      {"evaluate --checkpoint llama --by-document", {"--input"}},
  };
  for (const Case& bad : cases) {
    const std::string said = run(bad.arguments, 2);
    expect_words(said, bad.said);
    EXPECT_FALSE(said.starts_with("a")) << "the prompt comes with its text, not before an error\n" << said;
  }
}

TEST_F(Inference, AnExportHoldsWhatTransformersOpens) {
  std::string said = run("checkpoint convert gpt --to hugging-face --output hf-gpt", 0);
  expect_words(said, {"wrote ", "model.safetensors", "config.json", "vocab.json", "merges.txt", "tokenizer_config.json",
                      "generation_config.json"});
  EXPECT_EQ(json_of("hf-gpt/tokenizer_config.json")["tokenizer_class"], "GPT2Tokenizer");
  EXPECT_EQ(json_of("hf-gpt/tokenizer_config.json")["eos_token"], "<|endoftext|>");
  const int64_t end = json_of("hf-gpt/vocab.json")["<|endoftext|>"];
  EXPECT_EQ(json_of("hf-gpt/generation_config.json")["eos_token_id"], end);

  said = run("checkpoint convert llama --to hugging-face --output hf-llama", 0);
  expect_words(said, {"tokenizer.json", "tokenizer_config.json"});
  EXPECT_EQ(json_of("hf-llama/tokenizer.json")["model"]["vocab"].size(), 256u);
  EXPECT_EQ(json_of("hf-llama/tokenizer_config.json")["tokenizer_class"], "PreTrainedTokenizerFast");
  // And so do we, with the same ids.
  run("checkpoint convert hf-llama --to megalith --output back-llama", 0);
  const std::string asked = " --prompt 'the cat \xc3\xa9' --greedy --max-tokens 5 --json";
  EXPECT_EQ(objects_in(run("generate --checkpoint back-llama" + asked, 0)),
            objects_in(run("generate --checkpoint llama" + asked, 0)));
  // A tokenizer.json is taken along with the names of its tokens.
  run("checkpoint convert back-llama --to hugging-face --output hf-again", 0);
  EXPECT_EQ(json_of("hf-again/tokenizer.json"), json_of("hf-llama/tokenizer.json"));
  EXPECT_EQ(json_of("hf-again/tokenizer_config.json")["eos_token"], "<|endoftext|>");
}

TEST_F(Inference, AnImportedModelComesWithARecipeThatTrainsOn) {
  run("checkpoint convert gpt --to hugging-face --output hf-recipe", 0);
  expect_words(run("checkpoint convert hf-recipe --to megalith --output imported", 0), {"recipe.yaml"});
  fs::remove_all(path("hf-recipe"));
  expect_words(run("train -c imported/recipe.yaml", 2), {"model.data.data_prefix"});
  run("data prepare --input text.txt --output-prefix data --append-eod --tokenizer-type GPT2BPETokenizer "
      "--vocab-file tokenizer/vocab.json --merge-file tokenizer/merges.txt",
      0);
  // Without a learning rate the weights stay those that were imported.
  run("train -c imported/recipe.yaml 'model.data.data_prefix=[data_00_text_document]' model.data.splits_string=1,0,0 "
      "trainer.accelerator=cpu trainer.max_steps=1 model.optim.lr=0",
      0);
  const auto digests_of = [](const std::string& checkpoint) {
    std::istringstream lines(run("checkpoint inspect --digests " + checkpoint, 0));
    std::string found;
    bool in_digests = false;
    for (std::string line; std::getline(lines, line);) {
      if (in_digests && line.find(" weights ") != std::string::npos) found += line + "\n";
      in_digests = in_digests || line.starts_with("digests");
    }
    return found;
  };
  EXPECT_NE(digests_of("imported"), "");
  EXPECT_EQ(digests_of("runs/imported"), digests_of("imported"));
}

TEST_F(Inference, PromptsOfAFileBecomeTheSameTextInAnyBatch) {
  write("prompts.txt", "the cat\n\nand\na dog that sat\nthe cat\nx\n");
  for (const char* choice : {"--greedy", "--temperature 0.9 --seed 3 --repetition-penalty 1.2"}) {
    const std::string asked = std::string("generate --checkpoint llama --max-tokens 24 --json ") + choice;
    const auto together = objects_in(run(asked + " --prompts-file prompts.txt --batch-size 4", 0));
    ASSERT_EQ(together.size(), 5u);
    EXPECT_EQ(together[2]["prompt"], "a dog that sat");
    EXPECT_EQ(together[2]["prompt_tokens"], 14);
    EXPECT_EQ(objects_in(run(asked + " --prompts-file prompts.txt --batch-size 1", 0)), together);
    EXPECT_EQ(objects_in(run(asked, 0, "cat prompts.txt |")), together) << "standard input";
    EXPECT_EQ(objects_in(run(asked + " --prompt 'the cat'", 0))[0], together[0]);
  }
  write("prompts.jsonl", "{\"prompt\": \"two\\nlines\"}\n{\"text\": \"b\"}\n");
  const std::string plain = run("generate --checkpoint llama --greedy --max-tokens 2 --prompts-file prompts.jsonl", 0);
  EXPECT_TRUE(plain.starts_with("two\nlines")) << plain;
  expect_words(plain, {"\n---\nb", "[4 tokens"});
}

TEST_F(Inference, TextEndsAtAStopStringAndSaysWhenItOutgrowsTheContext) {
  const std::string asked = "generate --checkpoint llama --prompt ab --greedy --json --max-tokens ";
  const std::string whole = objects_in(run(asked + "40", 0))[0]["text"];
  ASSERT_GT(whole.size(), 6u);
  expect_words(run(asked + "40", 0), {"beyond 16 tokens"});
  EXPECT_EQ(run(asked + "4", 0).find("beyond"), std::string::npos);
  const std::string stop = whole.substr(whole.size() / 2, 2);
  write("stop", stop);
  const auto stopped = objects_in(run(asked + "40 --stop never-to-come --stop \"$(cat stop)\"", 0))[0];
  EXPECT_EQ(stopped["text"], whole.substr(0, whole.find(stop)));
  EXPECT_EQ(stopped["end"], "stop");
}

TEST_F(Inference, InteractiveContinuesLineByLine) {
  const std::string said = run("generate --checkpoint llama --interactive --greedy --max-tokens 3", 0,
                               "printf 'the cat\\n\\na line of more than sixteen bytes\\nand\\n' |");
  expect_words(said, {"the cat", "the model reads 16 at once", "\nand"});
  const auto alone = objects_in(run("generate --checkpoint llama --prompt and --greedy --max-tokens 3 --json", 0));
  expect_words(said, {"\nand" + alone[0]["text"].get<std::string>()});
}

// The value in a line of the summary.
double value_of(const std::string& said, const std::string& name) {
  const size_t at = said.find("\n" + name);
  return at == std::string::npos ? -1.0 : std::stod(said.substr(at + 1 + name.size()));
}

TEST_F(Inference, TextIsEvaluatedByDocument) {
  write("long.jsonl", "{\"text\": \"the cat\"}\n{\"text\": \"and the dog sat on the mat, on the cat\"}\n");
  const std::string said = run("evaluate --checkpoint llama --input long.jsonl --by-document", 0);
  expect_words(said, {"2 documents, 45 tokens, 45 bytes", "long.jsonl:1", "long.jsonl:2"});
  std::istringstream lines(said);
  std::string header;
  std::getline(lines, header);
  double nats = 0.0;
  for (int i = 0; i < 2; ++i) {
    int64_t tokens = 0, bytes = 0;
    double loss = 0.0, perplexity = 0.0;
    lines >> tokens >> bytes >> loss >> perplexity;
    lines.ignore(1000, '\n');
    EXPECT_NEAR(perplexity, std::exp(loss), 0.01 * perplexity);
    nats += loss * static_cast<double>(tokens);
  }
  EXPECT_NEAR(value_of(said, "loss"), nats / 45, 1e-3);
  // A token is a byte.
  EXPECT_EQ(value_of(said, "bits per byte"), value_of(said, "bits per token"));
  expect_words(run("evaluate --checkpoint llama --input long.jsonl --documents 1", 0), {"1 document, 7 tokens"});
  // Tokens that see more of what comes before them: another number for the long document alone.
  const std::string strided = run("evaluate --checkpoint llama --input long.jsonl --by-document --stride 4", 0);
  EXPECT_NE(value_of(strided, "loss"), value_of(said, "loss"));

  const std::string paragraphs = run("evaluate --checkpoint gpt --input text.txt --split-paragraphs", 0);
  expect_words(paragraphs, {"2 documents, "});
  EXPECT_LT(value_of(paragraphs, "bits per byte"), value_of(paragraphs, "bits per token"));
  expect_words(run("evaluate --checkpoint gpt --input text.txt --trigram", 2), {"--trigram", "--input"});
}

}  // namespace
}  // namespace megalith::cli::testing
