#include <CLI/CLI.hpp>
#include <filesystem>
#include <iostream>
#include <memory>

#include "cli/data_verbs.h"
#include "core/error.h"
#include "data/mapped_file.h"
#include "data/tokenizer/train_bpe.h"

namespace megalith::cli {

namespace {

struct Options {
  std::vector<std::string> inputs;
  int64_t vocab_size = 32000;
  std::string output;
};

int run_train_tokenizer(const Options& options) {
  data::BpeTrainer trainer;
  for (const std::string& input : options.inputs) {
    const data::MappedFile file(input);
    trainer.add({reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size()});
  }
  const data::TrainedBpe bpe = trainer.train(options.vocab_size);
  data::write_gpt2_files(bpe, options.output);
  const std::filesystem::path output = options.output;
  std::cout << fmt::format("wrote {} and {}: {} ids from {} bytes, {} different words\n",
                           (output / "vocab.json").string(), (output / "merges.txt").string(), bpe.tokens.size() + 1,
                           trainer.bytes(), trainer.words());
  if (static_cast<int64_t>(bpe.tokens.size()) + 1 < options.vocab_size) {
    std::cout << "the text holds no more pairs, so that there are fewer ids than asked for\n";
  }
  return kExitComplete;
}

}  // namespace

void add_data_train_tokenizer(CLI::App& data, Action& run) {
  CLI::App* train = data.add_subcommand(
      "train-tokenizer",
      "Learns a byte-level BPE from text files and writes it as GPT-2's vocab.json and merges.txt.\n\n"
      "  megalith data train-tokenizer --input book.txt --vocab-size 4096 --output-dir data/tokenizer");
  const auto options = std::make_shared<Options>();
  train->add_option("--input", options->inputs, "text files")->required();
  train->add_option("--vocab-size", options->vocab_size, "ids, <|endoftext|> included")->capture_default_str();
  train->add_option("--output-dir", options->output, "directory for vocab.json and merges.txt")->required();
  train->callback([options, &run] { run = [options] { return run_train_tokenizer(*options); }; });
}

}  // namespace megalith::cli
