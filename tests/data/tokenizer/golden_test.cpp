#include <gtest/gtest.h>

#include <chrono>
#include <fstream>
#include <nlohmann/json.hpp>
#include <thread>

#include "golden_data.h"
#include "tokenizer_testing.h"

namespace megalith::data {
namespace {

struct Golden {
  std::string key;  // in cases.jsonl
  config::Tokenizer config;
  int64_t vocab_size;
  int32_t eod;
};

std::vector<Golden> all_golden(const std::filesystem::path& root) {
  const std::string directory = (root / "tokenizer").string();
  return {{"gpt2",
           {.type = "GPT2BPETokenizer",
            .vocab_file = directory + "/gpt2/vocab.json",
            .merge_file = directory + "/gpt2/merges.txt"},
           50257,
           50256},
          {"cl100k",
           {.type = "TikTokenizer", .model = directory + "/cl100k_base.tiktoken", .tiktoken_pattern = "cl100k"},
           100277,
           100257},
          {"o200k",
           {.type = "TikTokenizer", .model = directory + "/o200k_base.tiktoken", .tiktoken_pattern = "o200k"},
           200019,
           199999}};
}

TEST(GoldenTokenizers, GiveTheIdsOfTheCases) {
  MEGALITH_GOLDEN_OR_SKIP(root);
  const auto goldens = all_golden(root);
  std::vector<nlohmann::json> cases;
  std::ifstream file(root / "tokenizer" / "cases.jsonl");
  for (std::string line; std::getline(file, line);) cases.push_back(nlohmann::json::parse(line));
  EXPECT_GE(cases.size(), 1000u);
  for (const Golden& golden : goldens) {
    const auto tokenizer = make_tokenizer(golden.config);
    EXPECT_EQ(tokenizer->vocab_size(), golden.vocab_size);
    EXPECT_EQ(tokenizer->eod(), golden.eod);
    EXPECT_EQ(vocabulary_of(golden.config).size, golden.vocab_size);
    EXPECT_EQ(vocabulary_of(golden.config).eod, golden.eod);
    for (const nlohmann::json& one : cases) {
      const auto text = one.at("text").get<std::string>();
      const auto wanted = one.at(golden.key).get<std::vector<int32_t>>();
      const auto found = tokenizer->encode(text);
      ASSERT_EQ(tokenizer->decode(found), text);
      ASSERT_EQ(found, wanted) << golden.key << ": " << text;
    }
  }
}

TEST(GoldenTokenizers, PathologicalTextTakesNoTime) {
  MEGALITH_GOLDEN_OR_SKIP(root);
  constexpr size_t kBytes = 1'000'000;
  std::mt19937 random(9);
  std::string letters, base64_text;
  while (letters.size() < kBytes) letters.push_back(static_cast<char>('a' + random() % 26));
  while (base64_text.size() < kBytes) base64_text.push_back("ABCDwxyz0189+/"[random() % 14]);
  std::string accents;
  while (accents.size() < kBytes) accents += "\u0301";
  const std::vector<std::string> texts = {std::string(kBytes, 'a'),
                                          std::string(kBytes, '^'),
                                          std::string(kBytes, ' '),
                                          std::string(kBytes, '\n'),
                                          std::string(kBytes, '0'),
                                          std::string(kBytes, '\xFF'),
                                          letters,
                                          base64_text,
                                          accents};
  for (Golden golden : all_golden(root)) {
    for (const std::string& pattern : {golden.config.tiktoken_pattern, std::string("llama3")}) {
      golden.config.tiktoken_pattern = pattern;
      const auto tokenizer = make_tokenizer(golden.config);
      for (const std::string& text : texts) {
        const auto begin = std::chrono::steady_clock::now();
        const auto ids = tokenizer->encode(text);
        const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
        // Far below what anything quadratic would take, far above a slow machine under a sanitizer.
        EXPECT_LT(seconds.count(), 20) << golden.key << " " << text.substr(0, 4);
        ASSERT_EQ(tokenizer->decode(ids), text);
      }
    }
  }
}

TEST(GoldenTokenizers, RankFileAndMergeListOfGpt2Agree) {
  MEGALITH_GOLDEN_OR_SKIP(root);
  const auto gpt2 = make_tokenizer(all_golden(root)[0].config);
  const auto& model = dynamic_cast<const BpeTokenizer&>(*gpt2).model();
  std::string ranks;
  for (int32_t id = 0; id < 50256; ++id) ranks += base64(model.tokens().bytes(id)) + " " + std::to_string(id) + "\n";
  const TempDir directory;
  write_bytes(directory / "r50k.tiktoken", ranks);
  const BpeTokenizer r50k(read_tiktoken(directory / "r50k.tiktoken", "r50k"));
  EXPECT_EQ(r50k.eod(), 50256);
  EXPECT_EQ(r50k.vocab_size(), 50257);
  std::mt19937 random(4);
  for (int i = 0; i < 300; ++i) {
    const std::string text = odd_text(random, 400);
    ASSERT_EQ(gpt2->encode(text), r50k.encode(text));
  }
}

TEST(GoldenTokenizers, ThreadsDoNotDisturbEachOther) {
  MEGALITH_GOLDEN_OR_SKIP(root);
  const auto goldens = all_golden(root);
  const auto gpt2 = make_tokenizer(goldens[0].config), cl100k = make_tokenizer(goldens[1].config);
  std::vector<std::string> texts;
  std::mt19937 random(5);
  for (int i = 0; i < 50; ++i) texts.push_back(odd_text(random, 500));
  std::vector<std::vector<int32_t>> wanted;
  for (const std::string& text : texts) wanted.push_back(gpt2->encode(text));
  std::vector<int> failures(4, 0);
  std::vector<std::thread> threads;
  for (size_t t = 0; t < failures.size(); ++t) {
    threads.emplace_back([&, t] {
      for (size_t i = 0; i < texts.size(); ++i) {
        if (gpt2->encode(texts[i]) != wanted[i]) ++failures[t];
        if (i % 10 == t) (void)cl100k->encode(texts[i]);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(failures, std::vector<int>(4, 0));
}

}  // namespace
}  // namespace megalith::data
