#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <cmath>
#include <iostream>
#include <memory>
#include <numbers>
#include <span>

#include "cli/accepts.h"
#include "cli/verbs.h"
#include "core/clock.h"
#include "core/error.h"
#include "data/files/byte_ngram.h"
#include "data/files/indexed_dataset.h"
#include "data/order/dataset.h"
#include "data/order/make_dataset.h"
#include "data/prepare/read/read_documents.h"
#include "data/tokenizer/tokenizer.h"
#include "train/inference/evaluate_text.h"
#include "train/inference/inference.h"

namespace megalith::cli {

namespace {

struct Options {
  std::string checkpoint;
  std::vector<std::string> overrides;
  data::Split split = data::Split::valid;
  int64_t batches = 0;
  bool trigram = false;
  data::ReadDocuments text;  // empty: a split of the run's datasets
  bool split_paragraphs = false;
  bool by_document = false;
  bool begins_with_bos = false;
  int64_t stride = 0;
  int64_t documents = 0;  // 0: all
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

int evaluate_split(checkpoint::Loaded& checkpoint, const config::Run& run, const Options& options) {
  const data::Split split = options.split;
  // Refuses several datasets before the long part.
  if (options.trigram) data::single_prefix(run.model.data);
  const train::Evaluation result = train::evaluate(checkpoint, run, {.split = split, .batches = options.batches});
  std::cout << fmt::format("checkpoint       step {} of {}\n", result.step, checkpoint.path().string())
            << fmt::format("split            {}, {} tokens in {:.1f} s\n", data::name_of(split), result.tokens,
                           result.seconds)
            << fmt::format("loss             {:.4f}\n", result.loss)
            << fmt::format("perplexity       {:.4f}\n", std::exp(result.loss));
  const double bits_per_token = result.loss / std::numbers::ln2;
  std::cout << fmt::format("bits per token   {:.4f}\n", bits_per_token);
  if (options.trigram) std::cout << compare_with_trigram(run, split, bits_per_token);
  return kExitComplete;
}

// A row of the table of documents.
void print_row(const std::string& name, const train::TextLoss& loss) {
  std::cout << fmt::format("{:>9} {:>9} {:>9.4f} {:>12.4f} {:>13.4f}  {}\n", loss.tokens, loss.bytes, loss.loss(),
                           loss.perplexity(), loss.bits_per_byte(), name);
}

int evaluate_text(checkpoint::Loaded& checkpoint, const config::Run& run, Options options) {
  const double begin = monotonic_seconds();
  if (options.split_paragraphs) options.text.text_documents = data::TextDocuments::blank_lines;
  train::TextModel model(checkpoint, run);
  const data::Tokenizer& tokenizer = model.tokenizer();
  if (options.stride < 0 || options.stride > model.context_length()) {
    user_error("--stride is {}: give 1 to {}, which the model reads at once, or 0 for that", options.stride,
               model.context_length());
  }
  if (options.begins_with_bos && tokenizer.bos() < 0) {
    user_error("--bos: tokenizer {} has no token that begins a document", tokenizer.name());
  }
  const train::TextWindows windows{.first = options.begins_with_bos ? tokenizer.bos() : tokenizer.eod(),
                                   .stride = options.stride};
  if (options.by_document) std::cout << "   tokens     bytes      loss   perplexity bits per byte  document\n";
  train::TextLoss all;
  int64_t documents = 0;
  data::read_documents(tokenizer, options.text, [&](const data::TextDocument& document) {
    if (options.documents > 0 && documents == options.documents) return;
    const train::TextLoss loss{.nats = train::nats_of_document(model, document.ids, windows),
                               .tokens = std::ssize(document.ids),
                               .bytes = document.bytes};
    all.add(loss);
    ++documents;
    if (options.by_document) print_row(fmt::format("{}:{}", document.file.string(), document.number), loss);
  });
  if (documents == 0) user_error("{} holds no text", fmt::join(options.text.inputs, ", "));
  std::cout << fmt::format("checkpoint       step {} of {}\n", checkpoint.manifest().state.step,
                           checkpoint.path().string())
            << fmt::format("text             {} document{}, {} tokens, {} bytes in {:.1f} s\n", documents,
                           documents == 1 ? "" : "s", all.tokens, all.bytes, monotonic_seconds() - begin)
            << fmt::format("loss             {:.4f}\n", all.loss())
            << fmt::format("perplexity       {:.4f}\n", all.perplexity())
            << fmt::format("bits per token   {:.4f}\n", all.loss() / std::numbers::ln2)
            << fmt::format("bits per byte    {:.4f}\n", all.bits_per_byte());
  return kExitComplete;
}

int run_evaluate(const Options& options) {
  checkpoint::Loaded checkpoint = train::open_checkpoint(options.checkpoint);
  const config::Run run = train::config_of(checkpoint, options.overrides);
  return options.text.inputs.empty() ? evaluate_split(checkpoint, run, options)
                                     : evaluate_text(checkpoint, run, options);
}

// Of a text instead of a dataset.
CLI::Option* add_text_choices(CLI::App& verb, Options& options) {
  CLI::Option* input =
      verb.add_option(
              "--input", options.text.inputs,
              "evaluate on these files instead: .txt, or .jsonl with a document a line, also .gz and .zst; or .parquet")
          ->allow_extra_args(false);
  const std::vector<CLI::Option*> needs_input{
      verb.add_flag("--by-document", options.by_document, "a line for each document of --input, too"),
      verb.add_option("--json-key", options.text.json_key, "where a line of JSON, or a row of Parquet, has its text")
          ->capture_default_str(),
      verb.add_option("--documents", options.documents, "only the first ones, so many; 0: all")
          ->check(at_least(0))
          ->capture_default_str(),
      verb.add_flag("--split-paragraphs", options.split_paragraphs,
                    "blank lines of a .txt file separate documents; without it a file is one"),
      verb.add_option("--stride", options.stride,
                      "of a document that is longer than the model reads: tokens that each window predicts, after "
                      "those before them; 0: a whole window")
          ->check(at_least(0))
          ->capture_default_str(),
      verb.add_flag("--bos", options.begins_with_bos,
                    "documents begin with the tokenizer's own beginning, not with the end of the one before")};
  for (CLI::Option* option : needs_input) option->needs(input);
  return input;
}

}  // namespace

void add_evaluate(CLI::App& program, Action& run) {
  CLI::App* verb = program.add_subcommand(
      "evaluate",
      "Loss and perplexity of a checkpoint on a dataset, or on text.\n\n"
      "  megalith evaluate --checkpoint runs/demo\n"
      "  megalith evaluate --checkpoint runs/demo --input book.txt --split-paragraphs --by-document\n"
      "  megalith evaluate --checkpoint runs/mine --split test model.data.data_prefix=[data/other_text_document]");
  const auto options = std::make_shared<Options>();
  verb->add_option("--checkpoint", options->checkpoint, "a run, its checkpoints directory, or one step in it")
      ->required();
  const std::vector<CLI::Option*> needs_dataset{
      verb->add_option("--split", options->split, "which part of the data")
          ->transform(as_value_of<data::Split>(
              {{"train", data::Split::train}, {"valid", data::Split::valid}, {"test", data::Split::test}}))
          ->default_str(std::string(data::name_of(options->split))),
      verb->add_option("--batches", options->batches, "micro batches to read; 0: the whole split once")
          ->check(at_least(0))
          ->capture_default_str(),
      verb->add_flag("--trigram", options->trigram,
                     "compare with a trigram model of the bytes of the training split, for a run on one dataset")};
  CLI::Option* input = add_text_choices(*verb, *options);
  for (CLI::Option* option : needs_dataset) option->excludes(input);
  verb->add_option("overrides", options->overrides, "key=value, changes to the config the model was trained with");
  verb->callback([options, &run] { run = [options] { return run_evaluate(*options); }; });
}

}  // namespace megalith::cli
