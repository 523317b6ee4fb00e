#include <CLI/CLI.hpp>
#include <iostream>
#include <memory>

#include "cli/data_verbs.h"
#include "core/error.h"
#include "data/tokenize_files.h"
#include "data/tokenizer.h"

namespace megalith::cli {

namespace {

struct Options {
  config::Tokenizer tokenizer;
  data::TokenizeOptions tokenize;
  std::vector<std::string> inputs;
  bool split_paragraphs = false;
  bool append_eod = false;
};

int run_tokenize(Options options) {
  options.tokenize.inputs.assign(options.inputs.begin(), options.inputs.end());
  options.tokenize.append_eod = options.append_eod;
  if (options.split_paragraphs) options.tokenize.text_documents = data::TextDocuments::blank_lines;
  options.tokenize.log = [](const data::TokenizeCounts& counts) {
    std::cerr << fmt::format("{} documents, {:.0f} documents/s, {:.1f} MB/s\n", counts.documents,
                             counts.documents_per_second(), counts.megabytes_per_second());
  };
  const auto tokenizer = data::make_tokenizer(options.tokenizer);
  const data::TokenizeCounts counts = data::tokenize_files(*tokenizer, options.tokenize);
  for (const std::string& key : options.tokenize.json_keys) {
    std::cout << fmt::format("wrote {}.bin and .idx: {} documents, {} tokens from {} bytes\n",
                             data::tokenized_prefix(options.tokenize.output_prefix, key), counts.documents,
                             counts.tokens, counts.bytes);
  }
  return kExitComplete;
}

}  // namespace

void add_data_tokenize(CLI::App& data, Action& run) {
  CLI::App* tokenize = data.add_subcommand(
      "tokenize",
      "Text to the .bin and .idx files that training reads.\n\n"
      "  megalith data tokenize --input book.txt --output-prefix data/book --append-eod --split-paragraphs\n"
      "  megalith data tokenize --input corpus.jsonl --output-prefix data/corpus --append-eod");
  const auto options = std::make_shared<Options>();
  tokenize->add_option("--input", options->inputs, ".txt files, or .jsonl files with one object a line")->required();
  tokenize->add_option("--output-prefix", options->tokenize.output_prefix, "writes PREFIX_KEY_document.bin and .idx")
      ->required();
  tokenize->add_option("--json-keys", options->tokenize.json_keys, "the keys that hold text")->capture_default_str();
  tokenize->add_option("--tokenizer-type", options->tokenizer.type, "ByteTokenizer")->capture_default_str();
  tokenize->add_flag("--append-eod", options->append_eod, "end every document with the end-of-document token");
  tokenize->add_flag("--split-paragraphs", options->split_paragraphs, "a document of a .txt file ends at blank lines");
  tokenize->add_flag("--overwrite", options->tokenize.overwrite, "replace output that exists");
  tokenize->add_option("--log-interval", options->tokenize.log_every, "documents between two lines of progress")
      ->capture_default_str();
  tokenize->callback([options, &run] { run = [options] { return run_tokenize(*options); }; });
}

}  // namespace megalith::cli
