#include <CLI/CLI.hpp>
#include <filesystem>
#include <iostream>
#include <map>
#include <memory>

#include "cli/accepts.h"
#include "cli/data/data_options.h"
#include "cli/data/data_verbs.h"
#include "core/error.h"
#include "core/words.h"
#include "data/prepare/read/input_list.h"

namespace megalith::cli {

namespace {

struct Options {
  EncodeVerb encode;
  std::string output_directory;  // an output for each input; empty: one output
  std::string worker;
  bool split_sentences = false;
  int64_t log_interval = 0;
};

void tokenize(Options options) {
  options.encode.prepare.numbered = false;
  const data::PrepareSummary summary = options.encode.run(options.log_interval);
  for (const auto& [key, counts] : summary.keys) {
    std::cout << fmt::format(
        "{} {}.bin and .idx: {}, {} from {} by {}\n", summary.shards_before > 0 ? "complete before:" : "wrote",
        data::output_name(options.encode.prepare.output_prefix, key), counted(counts.documents, "document"),
        counted(counts.tokens, "token"), counted(counts.text_bytes, "byte"), options.encode.made_with);
  }
  if (!summary.keys.empty()) print_skipped(summary.keys[0].counts.skipped);
}

void tokenize_each(Options options) {
  data::PrepareOptions& prepare = options.encode.prepare;
  if (!options.encode.input_list.empty()) read_input_list(options.encode.input_list, prepare.inputs);
  options.encode.input_list.clear();
  const data::WorkerShare share = worker_share(options.worker);
  const std::vector<data::InputFile> files = data::list_inputs(prepare.inputs, /*sort_all=*/true);
  const std::filesystem::path folder = options.output_directory;
  std::map<std::string, std::string> names;
  for (const data::InputFile& file : files) {
    const std::string path = file.path.string();
    const auto [other, fresh] = names.emplace(file.path.filename().string(), path);
    if (!fresh) user_error("{} and {} would both become {}", other->second, path, (folder / other->first).string());
  }
  for (int64_t i = share.index; i < std::ssize(files); i += share.count) {
    const std::filesystem::path& file = files[static_cast<size_t>(i)].path;
    prepare.inputs = {file.string()};
    prepare.output_prefix = (folder / file.filename()).string();
    tokenize(options);
  }
}

int run_tokenize(const Options& options) {
  if (options.split_sentences) user_error("--split-sentences is not supported: documents are sequences here");
  if (!options.output_directory.empty()) {
    tokenize_each(options);
    return kExitComplete;
  }
  if (options.encode.prepare.output_prefix.empty())
    user_error("nothing says where to write: give --output-prefix, or --output-dir for an output of each input");
  if (!options.worker.empty()) user_error("--worker needs --output-dir: one output is made by one process");
  tokenize(options);
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
  CLI::App* verb = data.add_subcommand(
      "tokenize",
      "Text to one .bin and .idx, with the flags of Megatron's preprocess_data.py.\n\n"
      "  megalith data tokenize --input book.txt --output-prefix data/book --append-eod --split-paragraphs\n"
      "  megalith data tokenize --input corpus.jsonl --output-prefix data/corpus --append-eod \\\n"
      "    --tokenizer-type GPT2BPETokenizer --vocab-file vocab.json --merge-file merges.txt\n"
      "  srun -n 16 megalith data tokenize --input 'chunks/*.jsonl' --output-dir data/tokens --append-eod");
  const auto options = std::make_shared<Options>();
  data::PrepareOptions& prepare = options->encode.prepare;
  verb->add_option("--input", prepare.inputs,
                   ".txt files, or .jsonl with one object a line, also .gz and .zst; or .parquet");
  verb->add_option("--input-list", options->encode.input_list, "a file that names inputs, one a line");
  CLI::Option* prefix =
      verb->add_option("--output-prefix", prepare.output_prefix, "writes PREFIX_KEY_document.bin, .idx and .json");
  verb->add_option("--output-dir", options->output_directory,
                   "an output for each input: writes DIR/INPUT_KEY_document.bin, .idx and .json")
      ->excludes(prefix);
  verb->add_option("--worker", options->worker,
                   "i/n: with --output-dir, this process does inputs i, i+n, ...; Slurm's variables by default");
  add_encode_options(*verb, options->encode);
  verb->add_flag("--split-sentences", options->split_sentences, "not supported")->group("");
  verb->add_option("--log-interval", options->log_interval, "documents between two lines of progress; 0: by time")
      ->check(at_least(0))
      ->capture_default_str();
  accept_and_ignore(*verb);
  verb->callback([verb, options, &run] {
    settle_tokenizer(*verb, options->encode.tokenizer);
    run = [options] { return run_tokenize(*options); };
  });
}

}  // namespace megalith::cli
