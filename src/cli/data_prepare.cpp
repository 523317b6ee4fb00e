#include <CLI/CLI.hpp>
#include <fstream>
#include <iostream>
#include <memory>

#include "cli/data_options.h"
#include "cli/data_verbs.h"
#include "core/error.h"

namespace megalith::cli {

namespace {

struct Options {
  EncodeVerb encode;
  std::string input_list;
  std::string worker;
};

void read_input_list(const std::string& path, std::vector<std::string>& inputs) {
  std::ifstream file(path);
  if (!file) user_error("cannot read the list of inputs {}", path);
  for (std::string line; std::getline(file, line);) {
    if (line.ends_with('\r')) line.pop_back();
    if (!line.empty()) inputs.push_back(line);
  }
}

void print_summary(const data::PrepareSummary& summary) {
  for (const auto& [key, counts] : summary.keys) {
    std::cout << fmt::format("{}: {} documents ({} empty), {} tokens from {} bytes of text", key, counts.documents,
                             counts.empty_documents, counts.tokens, counts.text_bytes);
    if (counts.filtered > 0) std::cout << fmt::format(", {} filtered out", counts.filtered);
    if (counts.special_texts > 0) std::cout << fmt::format(", {} special strings", counts.special_texts);
    std::cout << '\n';
  }
  if (!summary.keys.empty()) print_skipped(summary.keys[0].counts.skipped);
  std::cout << fmt::format("{} of {} shards are complete here ({} were before), {:.1f} s, {:.1f} MB/s\n",
                           summary.shards, summary.shards_in_all, summary.shards_before, summary.progress.seconds,
                           summary.progress.bytes_per_second() / 1e6);
}

int run_prepare(Options options) {
  data::PrepareOptions& prepare = options.encode.prepare;
  if (!options.input_list.empty()) read_input_list(options.input_list, prepare.inputs);
  prepare.worker = worker_share(options.worker);
  print_summary(options.encode.run());
  return kExitComplete;
}

}  // namespace

void add_data_prepare(CLI::App& data, Action& run) {
  CLI::App* verb = data.add_subcommand(
      "prepare",
      "Compressed JSON lines (.jsonl, .jsonl.gz, .jsonl.zst) or .txt to sharded .bin and .idx files, in one pass. Run "
      "the\n"
      "same command again after an interruption: only unfinished files are done again.\n\n"
      "  megalith data prepare --input 'slim/*.jsonl.zst' --output-prefix data/my-gpt3 --files-per-shard 800 \\\n"
      "    --tokenizer-type GPT2BPETokenizer --vocab-file vocab.json --merge-file merges.txt --append-eod \\\n"
      "    --keep meta.redpajama_set_name=RedPajamaCommonCrawl,RedPajamaC4,RedPajamaWikipedia\n"
      "  srun -n 16 megalith data prepare --input 'pile/*.jsonl.zst' --output-prefix data/my-gpt3 --shards 30 "
      "--append-eod");
  const auto options = std::make_shared<Options>();
  data::PrepareOptions& prepare = options->encode.prepare;
  verb->add_option("--input", prepare.inputs, "files and glob patterns; natural order is made: chunk2 before chunk10");
  verb->add_option("--input-list", options->input_list, "a file that names inputs, one a line");
  verb->add_option("--output-prefix", prepare.output_prefix, "writes PREFIX_NN_KEY_document.bin, .idx and .json")
      ->required();
  auto* shards = verb->add_option("--shards", prepare.shards, "number of outputs");
  verb->add_option("--files-per-shard", prepare.files_per_shard, "input files of an output")->excludes(shards);
  add_encode_options(*verb, options->encode);
  verb->add_option("--worker", options->worker,
                   "i/n: this process does shards i, i+n, ...; Slurm's variables by default");
  verb->callback([options, &run] { run = [options] { return run_prepare(*options); }; });
}

}  // namespace megalith::cli
