#include <CLI/CLI.hpp>
#include <iostream>
#include <memory>

#include "cli/accepts.h"
#include "cli/data/data_options.h"
#include "cli/data/data_verbs.h"
#include "core/error.h"
#include "core/words.h"

namespace megalith::cli {

namespace {

struct Options {
  EncodeVerb encode;
  std::string worker;
};

void print_outputs(const std::vector<std::string>& prefixes) {
  constexpr size_t kShown = 10;
  for (size_t i = 0; i < std::min(prefixes.size(), kShown); ++i) {
    std::cout << fmt::format("{}.bin, .idx and .json\n", prefixes[i]);
  }
  if (prefixes.size() > kShown) {
    std::cout << fmt::format("and {} more, the last is {}\n", prefixes.size() - kShown, prefixes.back());
  }
}

void print_summary(const data::PrepareSummary& summary, const std::string& made_with) {
  print_outputs(summary.prefixes);
  std::cout << fmt::format("tokenizer: {}\n", made_with);
  for (const auto& [key, counts] : summary.keys) {
    std::cout << fmt::format("{}: {} ({} empty), {} from {} of text", key, counted(counts.documents, "document"),
                             counts.empty_documents, counted(counts.tokens, "token"),
                             counted(counts.text_bytes, "byte"));
    if (counts.filtered > 0) std::cout << fmt::format(", {} filtered out", counts.filtered);
    if (counts.special_texts > 0) std::cout << fmt::format(", {} special strings", counts.special_texts);
    std::cout << '\n';
  }
  if (!summary.keys.empty()) print_skipped(summary.keys[0].counts.skipped);
  const std::string before =
      summary.shards_before == 0 ? "" : fmt::format(", {} of them before this run", summary.shards_before);
  std::cout << fmt::format("complete: {} of {}{}; {:.1f} s, {:.1f} MB/s\n", summary.shards,
                           counted(summary.shards_in_all, "shard"), before, summary.progress.seconds,
                           summary.progress.bytes_per_second() / 1e6);
}

int run_prepare(Options options) {
  options.encode.prepare.worker = worker_share(options.worker);
  const data::PrepareSummary summary = options.encode.run();
  print_summary(summary, options.encode.made_with);
  return kExitComplete;
}

}  // namespace

void add_data_prepare(CLI::App& data, Action& run) {
  CLI::App* verb = data.add_subcommand(
      "prepare",
      "Compressed JSON lines (.jsonl, .jsonl.gz, .jsonl.zst), .txt or .parquet to sharded .bin and .idx files, in one "
      "pass.\n"
      "Run the same command again after an interruption: only unfinished files and row groups are done again.\n\n"
      "  megalith data prepare --input 'slim/*.jsonl.zst' --output-prefix data/my-gpt3 --files-per-shard 800 \\\n"
      "    --tokenizer-type GPT2BPETokenizer --vocab-file vocab.json --merge-file merges.txt --append-eod \\\n"
      "    --keep meta.redpajama_set_name=RedPajamaCommonCrawl,RedPajamaC4,RedPajamaWikipedia\n"
      "  srun -n 16 megalith data prepare --input 'pile/*.jsonl.zst' --output-prefix data/my-gpt3 --shards 30 "
      "--append-eod");
  const auto options = std::make_shared<Options>();
  data::PrepareOptions& prepare = options->encode.prepare;
  add_input_options(*verb, prepare.inputs, options->encode.input_list);
  verb->add_option("--output-prefix", prepare.output_prefix, "writes PREFIX_NN_KEY_document.bin, .idx and .json")
      ->required();
  auto* shards = verb->add_option("--shards", prepare.shards, "number of outputs")->check(at_least(1));
  verb->add_option("--files-per-shard", prepare.files_per_shard, "input files of an output")
      ->check(at_least(1))
      ->excludes(shards);
  add_encode_options(*verb, options->encode);
  verb->add_option("--worker", options->worker,
                   "i/n: this process does shards i, i+n, ...; Slurm's variables by default");
  verb->callback([verb, options, &run] {
    settle_tokenizer(*verb, options->encode.tokenizer);
    run = [options] { return run_prepare(*options); };
  });
}

}  // namespace megalith::cli
