// Encoding rates per core of the real vocabularies on texts of one's own:
//
//   tokenizer_bench VOCABULARIES TEXT_FILE... [--benchmark_filter=gpt2]
//
// VOCABULARIES is a directory with gpt2/vocab.json, gpt2/merges.txt, cl100k_base.tiktoken and o200k_base.tiktoken.
#include <benchmark/benchmark.h>

#include <filesystem>
#include <iostream>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "core/error.h"
#include "core/file.h"
#include "data/tokenizer/bpe_tokenizer.h"
#include "data/tokenizer/tokenizer.h"

namespace {

using namespace megalith;
using namespace megalith::data;

// Documents of about this many bytes, cut at ends of lines, as a corpus has them.
constexpr size_t kDocumentBytes = 4096;

struct Text {
  std::string name;
  std::string content;
  std::vector<std::string_view> documents;

  Text(std::string text_name, std::string text) : name(std::move(text_name)), content(std::move(text)) {
    std::string_view left = content;
    while (!left.empty()) {
      const size_t end = left.find('\n', kDocumentBytes);
      documents.push_back(left.substr(0, end == std::string_view::npos ? left.size() : end + 1));
      left.remove_prefix(documents.back().size());
    }
  }
};

void encode(benchmark::State& state, const Tokenizer& tokenizer, const Text& text) {
  std::vector<int32_t> ids;
  int64_t tokens = 0;
  for (auto _ : state) {
    for (const std::string_view document : text.documents) {
      ids.clear();
      tokenizer.encode(document, ids);
      tokens += std::ssize(ids);
      benchmark::DoNotOptimize(ids.data());
    }
  }
  const auto bytes = static_cast<double>(text.content.size()) * static_cast<double>(state.iterations());
  state.counters["MB/s"] = benchmark::Counter(bytes / 1e6, benchmark::Counter::kIsRate);
  state.counters["tokens/s"] = benchmark::Counter(static_cast<double>(tokens), benchmark::Counter::kIsRate);
}

void scan(benchmark::State& state, Grammar grammar, const Text& text) {
  const Scanner scanner(grammar);
  std::vector<const char*> ends(Scanner::kBatch + Scanner::kSlack);
  for (auto _ : state) {
    for (const std::string_view document : text.documents) {
      const char* at = document.data();
      const char* const end = at + document.size();
      while (const size_t count = scanner.scan(at, end, ends.data())) at = ends[count - 1];
      benchmark::DoNotOptimize(at);
    }
  }
  const auto bytes = static_cast<double>(text.content.size()) * static_cast<double>(state.iterations());
  state.counters["MB/s"] = benchmark::Counter(bytes / 1e6, benchmark::Counter::kIsRate);
}

std::string random_letters(size_t size) {
  std::mt19937 random(1);
  std::string text;
  while (text.size() < size) text.push_back(static_cast<char>('a' + random() % 26));
  return text;
}

std::vector<config::Tokenizer> vocabularies(const std::string& directory) {
  const std::string cl100k = directory + "/cl100k_base.tiktoken", o200k = directory + "/o200k_base.tiktoken";
  return {{.type = "GPT2BPETokenizer",
           .vocab_file = directory + "/gpt2/vocab.json",
           .merge_file = directory + "/gpt2/merges.txt"},
          {.type = "TikTokenizer", .model = cl100k, .tiktoken_pattern = "cl100k"},
          {.type = "TikTokenizer", .model = o200k, .tiktoken_pattern = "o200k"},
          {.type = "TikTokenizer", .model = cl100k, .tiktoken_pattern = "llama3"}};
}

int run(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  if (argc < 3) user_error("tokenizer_bench VOCABULARIES TEXT_FILE... [--benchmark_...]");
  std::vector<std::unique_ptr<Text>> texts;
  for (int i = 2; i < argc; ++i) {
    texts.push_back(std::make_unique<Text>(std::filesystem::path(argv[i]).stem().string(), read_text(argv[i])));
  }
  constexpr size_t kWorst = 1'000'000;
  texts.push_back(std::make_unique<Text>("random-letters", random_letters(kWorst)));
  texts.push_back(std::make_unique<Text>("one-letter", std::string(kWorst, 'a')));
  texts.push_back(std::make_unique<Text>("spaces", std::string(kWorst, ' ')));

  std::vector<std::unique_ptr<Tokenizer>> tokenizers;
  for (const config::Tokenizer& config : vocabularies(argv[1])) {
    tokenizers.push_back(make_tokenizer(config));
    const auto& bpe = dynamic_cast<const BpeTokenizer&>(*tokenizers.back());
    for (const auto& text : texts) {
      const std::string name = bpe.identity().grammar + "/" + text->name;
      benchmark::RegisterBenchmark(("encode/" + name).c_str(), [&bpe, &text = *text](benchmark::State& state) {
        encode(state, bpe, text);
      })->Unit(benchmark::kMillisecond);
      benchmark::RegisterBenchmark(("scan/" + name).c_str(), [&bpe, &text = *text](benchmark::State& state) {
        scan(state, bpe.grammar(), text);
      })->Unit(benchmark::kMillisecond);
    }
  }
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(argc, argv);
  } catch (const Error& error) {
    std::cerr << error.what() << "\n";
    return exit_code(error.kind());
  }
}
