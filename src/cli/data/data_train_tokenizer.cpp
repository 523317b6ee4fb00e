#include <CLI/CLI.hpp>
#include <filesystem>
#include <iostream>
#include <memory>

#include "cli/data/data_options.h"
#include "cli/data/data_verbs.h"
#include "core/words.h"
#include "data/prepare/learn_words.h"

namespace megalith::cli {

namespace {

struct Options {
  ReadVerb read;
  int64_t vocab_size = 32000;
  std::string output;
};

int run_train_tokenizer(Options options) {
  options.read.settle();
  data::BpeTrainer trainer;
  const data::LearnedTexts learned = data::learn_words(trainer, options.read.prepare);
  const data::TrainedBpe bpe = trainer.train(options.vocab_size);
  data::write_gpt2_files(bpe, options.output);
  const std::filesystem::path output = options.output;
  std::cout << fmt::format("wrote {} and {}: {} ids from {} bytes in {}, {}\n", (output / "vocab.json").string(),
                           (output / "merges.txt").string(), bpe.tokens.size() + 1, trainer.bytes(),
                           counted(learned.documents, "document"), counted(trainer.words(), "different word"));
  if (learned.filtered > 0) std::cout << fmt::format("{} filtered out\n", counted(learned.filtered, "document"));
  print_skipped(learned.skipped);
  if (static_cast<int64_t>(bpe.tokens.size()) + 1 < options.vocab_size) {
    std::cout << "the text holds no more pairs, so that there are fewer ids than asked for\n";
  }
  return kExitComplete;
}

}  // namespace

void add_data_train_tokenizer(CLI::App& data, Action& run) {
  CLI::App* train = data.add_subcommand(
      "train-tokenizer",
      "Learns a byte-level BPE from texts and writes it as GPT-2's vocab.json and merges.txt. Reads what `prepare` "
      "reads.\n\n"
      "  megalith data train-tokenizer --input book.txt --vocab-size 4096 --output-dir data/tokenizer\n"
      "  megalith data train-tokenizer --input 'pile/0[0-3].jsonl.zst' --vocab-size 50257 --output-dir data/tokenizer");
  const auto options = std::make_shared<Options>();
  add_input_options(*train, options->read.prepare.inputs, options->read.input_list);
  add_read_options(*train, options->read);
  train->add_option("--vocab-size", options->vocab_size, "ids, <|endoftext|> included")->capture_default_str();
  train->add_option("--output-dir", options->output, "directory for vocab.json and merges.txt")->required();
  train->callback([options, &run] { run = [options] { return run_train_tokenizer(*options); }; });
}

}  // namespace megalith::cli
