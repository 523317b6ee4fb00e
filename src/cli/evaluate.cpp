#include <CLI/CLI.hpp>
#include <cmath>
#include <iostream>
#include <map>
#include <memory>
#include <numbers>
#include <span>

#include "cli/verbs.h"
#include "core/error.h"
#include "data/byte_ngram.h"
#include "data/dataset.h"
#include "data/indexed_dataset.h"
#include "data/make_dataset.h"
#include "data/tokenizer.h"
#include "train/inference.h"

namespace megalith::cli {

namespace {

struct Options {
  std::string checkpoint;
  std::vector<std::string> overrides;
  train::EvaluateOptions evaluate;
  bool trigram = false;
};

// The text of a split as byte tokens: what a model of bytes would have seen.
std::vector<int32_t> bytes_of(std::span<const int32_t> tokens, const data::Tokenizer& tokenizer) {
  const std::string text = tokenizer.decode(tokens);
  std::vector<int32_t> bytes;
  bytes.reserve(text.size());
  for (const char c : text) bytes.push_back(static_cast<unsigned char>(c));
  return bytes;
}

// What counting alone achieves on the same text: a trigram model of its bytes, fitted to the training split.
std::string compare_with_trigram(const config::Run& run, data::Split split, double bits_per_token) {
  const auto tokenizer = data::make_tokenizer(run.model.tokenizer);
  const data::IndexedDataset dataset(data::single_prefix(run.model.data));
  const data::Splits splits(run.model.data.splits_string);
  const auto tokens_of = [&](data::Split part) {
    return data::read_tokens(dataset, splits.range(part, dataset.sequences()));
  };
  data::ByteNgram trigram;
  trigram.fit(bytes_of(tokens_of(data::Split::train), *tokenizer));
  const std::vector<int32_t> tokens = tokens_of(split);
  const std::vector<int32_t> bytes = bytes_of(tokens, *tokenizer);
  const double of_model = bits_per_token * static_cast<double>(tokens.size()) / static_cast<double>(bytes.size());
  const double of_trigram = trigram.bits_per_byte(bytes);
  return fmt::format("bits per byte    {:.4f}; an interpolated trigram model has {:.4f}, the model is {:.4f} {}\n",
                     of_model, of_trigram, std::abs(of_trigram - of_model), of_model < of_trigram ? "below" : "above");
}

int run_evaluate(const Options& options) {
  checkpoint::Loaded checkpoint = train::open_checkpoint(options.checkpoint);
  const config::Run run = train::config_of(checkpoint, options.overrides);
  // Refuses several datasets before the long part.
  if (options.trigram) data::single_prefix(run.model.data);
  const train::Evaluation result = train::evaluate(checkpoint, run, options.evaluate);
  std::cout << fmt::format("checkpoint       step {} of {}\n", result.step, checkpoint.path().string())
            << fmt::format("split            {}, {} tokens in {:.1f} s\n", data::name_of(options.evaluate.split),
                           result.tokens, result.seconds)
            << fmt::format("loss             {:.4f}\n", result.loss)
            << fmt::format("perplexity       {:.4f}\n", std::exp(result.loss));
  const double bits_per_token = result.loss / std::numbers::ln2;
  std::cout << fmt::format("bits per token   {:.4f}\n", bits_per_token);
  if (options.trigram) std::cout << compare_with_trigram(run, options.evaluate.split, bits_per_token);
  return kExitComplete;
}

}  // namespace

void add_evaluate(CLI::App& program, Action& run) {
  CLI::App* verb = program.add_subcommand(
      "evaluate",
      "Loss and perplexity of a checkpoint on a dataset.\n\n"
      "  megalith evaluate --checkpoint runs/demo\n"
      "  megalith evaluate --checkpoint runs/mine --split test model.data.data_prefix=[data/other_text_document]");
  const auto options = std::make_shared<Options>();
  verb->add_option("--checkpoint", options->checkpoint, "a run, its checkpoints directory, or one step in it")
      ->required();
  const std::map<std::string, data::Split> splits{
      {"train", data::Split::train}, {"valid", data::Split::valid}, {"test", data::Split::test}};
  verb->add_option("--split", options->evaluate.split, "train, valid or test")
      ->transform(CLI::CheckedTransformer(splits));
  verb->add_option("--batches", options->evaluate.batches, "micro batches to read; 0: the whole split once")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  verb->add_flag("--trigram", options->trigram,
                 "compare with a trigram model of the bytes of the training split, for a run on one dataset");
  verb->add_option("overrides", options->overrides, "key=value, changes to the config the model was trained with");
  verb->callback([options, &run] { run = [options] { return run_evaluate(*options); }; });
}

}  // namespace megalith::cli
