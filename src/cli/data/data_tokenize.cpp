#include <CLI/CLI.hpp>
#include <iostream>
#include <memory>

#include "cli/accepts.h"
#include "cli/data/data_options.h"
#include "cli/data/data_verbs.h"
#include "core/error.h"

namespace megalith::cli {

namespace {

struct Options {
  EncodeVerb encode;
  bool split_sentences = false;
  int64_t log_interval = 0;
};

int run_tokenize(Options options) {
  if (options.split_sentences) user_error("--split-sentences is not supported: documents are sequences here");
  options.encode.prepare.numbered = false;
  const data::PrepareSummary summary = options.encode.run(options.log_interval);
  for (const auto& [key, counts] : summary.keys) {
    std::cout << fmt::format("{} {}.bin and .idx: {} documents, {} tokens from {} bytes by {}\n",
                             summary.shards_before > 0 ? "complete before:" : "wrote",
                             data::output_name(options.encode.prepare.output_prefix, key), counts.documents,
                             counts.tokens, counts.text_bytes, options.encode.made_with);
  }
  if (!summary.keys.empty()) print_skipped(summary.keys[0].counts.skipped);
  return kExitComplete;
}

// Flags of Megatron's and NeMo's scripts that steer their Python only.
void accept_and_ignore(CLI::App& verb) {
  for (const char* name : {"--dataset-impl", "--dataset_impl", "--tokenizer-library", "--partitions",
                           "--workers-to-check", "--max-documents", "--lang", "--vocab-extra-ids", "--rank",
                           "--make-vocab-size-divisible-by", "--tensor-model-parallel-size", "--preproc-folder"}) {
    verb.add_option(name, "no effect")->group("");
  }
  for (const char* name :
       {"--keep-sequential-samples", "--find-optimal-num-workers", "--keep-newlines", "--need-pad-id"}) {
    verb.add_flag(name)->group("");
  }
}

}  // namespace

void add_data_tokenize(CLI::App& data, Action& run) {
  CLI::App* tokenize = data.add_subcommand(
      "tokenize",
      "Text to one .bin and .idx, with the flags of Megatron's preprocess_data.py.\n\n"
      "  megalith data tokenize --input book.txt --output-prefix data/book --append-eod --split-paragraphs\n"
      "  megalith data tokenize --input corpus.jsonl --output-prefix data/corpus --append-eod \\\n"
      "    --tokenizer-type GPT2BPETokenizer --vocab-file vocab.json --merge-file merges.txt");
  const auto options = std::make_shared<Options>();
  data::PrepareOptions& prepare = options->encode.prepare;
  tokenize
      ->add_option("--input", prepare.inputs,
                   ".txt files, or .jsonl with one object a line, also .gz and .zst; or .parquet")
      ->required();
  tokenize->add_option("--output-prefix", prepare.output_prefix, "writes PREFIX_KEY_document.bin, .idx and .json")
      ->required();
  add_encode_options(*tokenize, options->encode);
  tokenize->add_flag("--split-sentences", options->split_sentences, "not supported")->group("");
  tokenize->add_option("--log-interval", options->log_interval, "documents between two lines of progress; 0: by time")
      ->check(at_least(0))
      ->capture_default_str();
  accept_and_ignore(*tokenize);
  tokenize->callback([tokenize, options, &run] {
    settle_tokenizer(*tokenize, options->encode.tokenizer);
    run = [options] { return run_tokenize(*options); };
  });
}

}  // namespace megalith::cli
