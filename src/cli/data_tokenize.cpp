#include <CLI/CLI.hpp>

#include "cli/data_options.h"
#include "cli/data_verbs.h"

namespace megalith::cli {

namespace {

struct Options {
  config::Tokenizer tokenizer;
  TextOptions text;
  TokenOptions tokens;
  data::PrepareOptions prepare;
  bool split_paragraphs = false;
  bool split_sentences = false;
  int64_t log_interval = 0;
};

int run_tokenize(Options options) {
  if (options.split_sentences) user_error("--split-sentences is not supported: documents are sequences here");
  data::PrepareOptions& prepare = options.prepare;
  const auto tokenizer = data::make_tokenizer(options.tokenizer);
  prepare.numbered = false;
  prepare.encode.keep = options.text.filters();
  prepare.encode.on_error = options.text.on_error;
  prepare.encode.bad_text = options.text.bad_text;
  prepare.encode.max_document_bytes = options.text.max_document_bytes;
  prepare.read = options.text.read;
  options.tokens.apply(*tokenizer, prepare.encode);
  if (options.split_paragraphs) prepare.text_documents = data::TextDocuments::blank_lines;
  ProgressLine line;
  int64_t next_log = options.log_interval;
  prepare.progress = [&](const data::PrepareProgress& progress) {
    const bool due = options.log_interval > 0 && progress.documents >= next_log;
    if (due) next_log = (progress.documents / options.log_interval + 1) * options.log_interval;
    line.show(format_progress(progress), due);
  };
  prepare.warn = [&line](const std::string& warning) {
    line.end();
    std::cerr << "warning: " << warning << '\n';
  };
  const data::PrepareSummary summary = data::prepare(*tokenizer, prepare);
  line.end();
  for (const auto& [key, counts] : summary.keys) {
    std::cout << fmt::format("{} {}.bin and .idx: {} documents, {} tokens from {} bytes\n",
                             summary.shards_before > 0 ? "complete before:" : "wrote",
                             data::output_name(prepare.output_prefix, key), counts.documents, counts.tokens,
                             counts.text_bytes);
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
  data::PrepareOptions& prepare = options->prepare;
  prepare.threads = available_cores();
  tokenize->add_option("--input", prepare.inputs, ".txt files, or .jsonl with one object a line; also .gz and .zst")
      ->required();
  tokenize->add_option("--output-prefix", prepare.output_prefix, "writes PREFIX_KEY_document.bin, .idx and .json")
      ->required();
  tokenize->add_option("--json-keys", prepare.encode.json_keys, "the keys that hold text; a.b for nested ones")
      ->capture_default_str();
  add_tokenizer_options(*tokenize, options->tokenizer);
  add_token_options(*tokenize, options->tokens);
  add_text_options(*tokenize, options->text);
  add_bad_text_option(*tokenize, options->text);
  tokenize->add_flag("--split-paragraphs", options->split_paragraphs, "a document of a .txt file ends at blank lines");
  tokenize->add_flag("--split-sentences", options->split_sentences, "not supported")->group("");
  tokenize->add_option("--workers", prepare.threads, "threads")->check(CLI::PositiveNumber)->capture_default_str();
  tokenize->add_flag("--overwrite", prepare.overwrite, "replace output of other inputs or options");
  tokenize->add_option("--log-interval", options->log_interval, "documents between two lines of progress; 0: by time")
      ->capture_default_str();
  accept_and_ignore(*tokenize);
  tokenize->callback([options, &run] { run = [options] { return run_tokenize(*options); }; });
}

}  // namespace megalith::cli
