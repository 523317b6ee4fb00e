#include <CLI/CLI.hpp>
#include <iostream>
#include <memory>

#include "cli/accepts.h"
#include "cli/data/data_options.h"
#include "cli/data/data_verbs.h"
#include "data/files/dataset_check.h"
#include "data/files/dataset_info.h"
#include "data/tokenizer/tokenizer.h"

namespace megalith::cli {

namespace {

struct Options {
  std::vector<std::string> paths;
  config::Tokenizer tokenizer;
  bool with_tokenizer = false;
  int64_t samples = 3;
  int64_t width = 200;
};

int run_info(const Options& options) {
  std::unique_ptr<data::Tokenizer> tokenizer;
  if (options.with_tokenizer) tokenizer = data::make_tokenizer(options.tokenizer);
  for (const std::string& prefix : data::list_datasets(options.paths)) {
    const data::IndexedDataset dataset(prefix);
    std::cout << data::describe_counts(dataset) << data::describe_origin(prefix)
              << data::draw(data::histogram_of(dataset))
              << data::show_samples(dataset, tokenizer.get(), options.samples, options.width);
  }
  return kExitComplete;
}

}  // namespace

void add_data_info(CLI::App& data, Action& run) {
  CLI::App* info = data.add_subcommand(
      "info",
      "What is in a dataset: counts, lengths, samples.\n\n"
      "  megalith data info data/demo-bpe_text_document --tokenizer-type GPT2BPETokenizer \\\n"
      "    --vocab-file data/demo-tokenizer/vocab.json --merge-file data/demo-tokenizer/merges.txt\n"
      "  megalith data info data/ --samples 0");
  const auto options = std::make_shared<Options>();
  info->add_option("paths", options->paths, "prefixes of .bin and .idx files, or directories")->required();
  info->add_option("--samples", options->samples, "how many sequences to show")
      ->check(at_least(0))
      ->capture_default_str();
  info->add_option("--width", options->width, "bytes of text to show of each")
      ->check(at_least(1))
      ->capture_default_str();
  add_tokenizer_options(*info, options->tokenizer);
  info->callback([info, options, &run] {
    settle_tokenizer(*info, options->tokenizer);
    options->with_tokenizer = names_tokenizer(*info);
    run = [options] { return run_info(*options); };
  });
}

}  // namespace megalith::cli
