#include "cli/data/data_options.h"

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <cstdio>
#include <filesystem>
#include <iostream>
#include <sstream>

#include "cli/accepts.h"
#include "config/environment/environment.h"
#include "core/error.h"
#include "core/file.h"
#include "core/thread_pool.h"
#include "core/words.h"
#include "data/tokenizer/data_tokenizer.h"

namespace megalith::cli {

void add_tokenizer_options(CLI::App& verb, config::Tokenizer& tokenizer) {
  verb.add_option("--tokenizer-type", tokenizer.type,
                  "how text becomes ids; those of GPT-2, Hugging Face and tiktoken need their files")
      ->check(one_of({"ByteTokenizer", "GPT2BPETokenizer", "HuggingFaceTokenizer", "TikTokenizer"}))
      ->capture_default_str();
  verb.add_option("--vocab-file", tokenizer.vocab_file, "GPT-2's vocab.json");
  verb.add_option("--merge-file", tokenizer.merge_file, "GPT-2's merges.txt");
  verb.add_option("--tokenizer-model", tokenizer.model, "a tokenizer.json, or a tiktoken rank file");
  verb.add_option("--tiktoken-pattern", tokenizer.tiktoken_pattern, "how a tiktoken file cuts text")
      ->check(one_of({"r50k", "cl100k", "o200k", "llama3"}));
  verb.add_option("--eod-token", tokenizer.eod_token,
                  "the token of a tokenizer.json that ends documents, if neither <|end_of_text|> nor <|endoftext|>");
}

namespace {
struct TokenizerOption {
  const char* name;
  std::array<const char*, 2> used_by;
};
constexpr std::array kTokenizerOptions = {
    TokenizerOption{"--vocab-file", {"GPT2BPETokenizer", ""}},
    TokenizerOption{"--merge-file", {"GPT2BPETokenizer", ""}},
    TokenizerOption{"--tokenizer-model", {"HuggingFaceTokenizer", "TikTokenizer"}},
    TokenizerOption{"--tiktoken-pattern", {"TikTokenizer", ""}},
    TokenizerOption{"--eod-token", {"HuggingFaceTokenizer", ""}},
};
}  // namespace

bool names_tokenizer(const CLI::App& verb) {
  return verb.count("--tokenizer-type") > 0 ||
         std::ranges::any_of(kTokenizerOptions, [&](const auto& option) { return verb.count(option.name) > 0; });
}

void settle_tokenizer(const CLI::App& verb, config::Tokenizer& tokenizer) {
  const bool typed = verb.count("--tokenizer-type") > 0;
  if (!typed && verb.count("--vocab-file") > 0 && verb.count("--merge-file") > 0) tokenizer.type = "GPT2BPETokenizer";
  for (const auto& [name, used_by] : kTokenizerOptions) {
    if (verb.count(name) == 0 || std::ranges::find(used_by, tokenizer.type) != used_by.end()) continue;
    if (typed) user_error("{} is given, which {} does not use: leave it out, or name its type", name, tokenizer.type);
    user_error(
        "{} is given without --tokenizer-type: add GPT2BPETokenizer (with --vocab-file and --merge-file), "
        "HuggingFaceTokenizer or TikTokenizer (with --tokenizer-model)",
        name);
  }
}

std::vector<data::FieldFilter> TextOptions::filters() const {
  std::vector<data::FieldFilter> all;
  for (const std::string& text : keep) all.push_back(data::parse_field_filter(text));
  return all;
}

void add_text_options(CLI::App& verb, TextOptions& options) {
  verb.add_option("--keep", options.keep, "keep documents whose field is one of these: PATH=VALUE,VALUE,...");
  verb.add_option("--on-error", options.on_error, "fail at a bad line or file, or skip and count it")
      ->transform(as_value_of<data::OnError>({{"fail", data::OnError::fail}, {"skip", data::OnError::skip}}))
      ->default_str("fail");
  verb.add_option("--max-document-bytes", options.max_document_bytes, "a longer line is a bad line")
      ->check(at_least(1))
      ->capture_default_str();
  verb.add_option("--zstd-window-log", options.read.zstd_window_log, "largest window of a zstd file, as a power of two")
      ->check(between(10, 31))
      ->capture_default_str();
}

void add_read_options(CLI::App& verb, ReadVerb& options) {
  data::PrepareOptions& prepare = options.prepare;
  data::EncodeOptions& encode = prepare.encode;
  verb.add_option("--json-keys", encode.json_keys,
                  "the keys, or columns of Parquet, that hold text; a.b for nested keys")
      ->capture_default_str();
  verb.add_option("--format", prepare.format,
                  "what the inputs are; by-name: .jsonl, .json and .txt, also with .gz or .zst, and .parquet")
      ->transform(as_value_of<data::InputFormat>({{"by-name", data::InputFormat::by_name},
                                                  {"jsonl", data::InputFormat::json_lines},
                                                  {"text", data::InputFormat::text},
                                                  {"parquet", data::InputFormat::parquet}}))
      ->default_str("by-name");
  add_text_options(verb, options.text);
  verb.add_option("--bad-text", encode.bad_text,
                  "invalid UTF-8 and lone surrogates: reject the line, or replace by U+FFFD")
      ->transform(as_value_of<data::BadText>({{"reject", data::BadText::reject}, {"replace", data::BadText::replace}}))
      ->default_str("reject");
  verb.add_flag("--split-paragraphs", options.split_paragraphs, "a document of a .txt file ends at blank lines");
}

void add_input_options(CLI::App& verb, std::vector<std::string>& inputs, std::string& input_list) {
  verb.add_option("--input", inputs, "files and glob patterns; natural order is made: chunk2 before chunk10");
  verb.add_option("--input-list", input_list, "a file that names inputs, one a line");
}

void read_input_list(const std::string& path, std::vector<std::string>& inputs) {
  std::error_code ignored;
  if (!std::filesystem::exists(path, ignored)) user_error("the list of inputs {} does not exist", path);
  std::istringstream lines(read_text(path));
  for (std::string line; std::getline(lines, line);) {
    if (line.ends_with('\r')) line.pop_back();
    if (!line.empty()) inputs.push_back(line);
  }
}

void ReadVerb::settle() {
  if (!input_list.empty()) read_input_list(input_list, prepare.inputs);
  data::EncodeOptions& encode = prepare.encode;
  encode.keep = text.filters();
  encode.on_error = text.on_error;
  encode.max_document_bytes = text.max_document_bytes;
  prepare.read = text.read;
  if (split_paragraphs) prepare.text_documents = data::TextDocuments::blank_lines;
}

void add_encode_options(CLI::App& verb, EncodeVerb& options) {
  data::PrepareOptions& prepare = options.prepare;
  data::EncodeOptions& encode = prepare.encode;
  prepare.threads = available_cores();
  add_read_options(verb, options);
  add_tokenizer_options(verb, options.tokenizer);
  verb.add_flag("--append-eod", encode.append_eod, "end every document with the end-of-document token");
  verb.add_flag("--prepend-bos", options.prepend_bos, "begin every document with the tokenizer's first token");
  verb.add_option("--special-in-text", options.special,
                  "strings like <|endoftext|> in a text: plain characters (counted), encode as the token, or reject")
      ->check(one_of({"plain", "encode", "reject"}));
  verb.add_option("--workers", prepare.threads, "threads")->check(between(1, kMostThreads))->capture_default_str();
  verb.add_flag("--overwrite", prepare.overwrite, "replace output of other inputs or options");
}

namespace {
std::string format_progress(const data::PrepareProgress& p) {
  const double share =
      p.bytes_total > 0 ? 100.0 * static_cast<double>(p.bytes) / static_cast<double>(p.bytes_total) : 0;
  const double text_rate = p.seconds > 0.0 ? static_cast<double>(p.text_bytes) / 1e6 / p.seconds : 0.0;
  return fmt::format("{:.1f}% of {:.1f} MB, {} documents, {} tokens, {:.1f} MB/s in, {:.1f} MB/s of text, {} left",
                     share, static_cast<double>(p.bytes_total) / 1e6, p.documents, p.tokens, p.bytes_per_second() / 1e6,
                     text_rate, p.seconds_left() < 0.0 ? "?" : format_duration(p.seconds_left()));
}
}  // namespace

data::PrepareSummary EncodeVerb::run(int64_t log_interval) {
  const auto made = data::make_tokenizer(tokenizer);
  made_with = data::describe(data::recorded(*made));
  settle();
  data::EncodeOptions& encode = prepare.encode;
  if (prepend_bos) {
    if (made->bos() < 0) user_error("--prepend-bos: {} has no token that begins a document", made->name());
    encode.bos = made->bos();
  }
  encode.look_for_special_text = !special.empty();
  if (special == "encode") encode.special_text = data::SpecialText::encode;
  if (special == "reject") encode.special_text = data::SpecialText::reject;

  ProgressLine line;
  int64_t next_log = log_interval;
  prepare.progress = [&](const data::PrepareProgress& progress) {
    const bool due = log_interval > 0 && progress.documents >= next_log;
    if (due) next_log = (progress.documents / log_interval + 1) * log_interval;
    line.show(format_progress(progress), due);
  };
  prepare.warn = [&line](const std::string& warning) { line.warn(warning); };
  data::PrepareSummary summary = data::prepare(*made, prepare);
  line.end();
  return summary;
}

data::WorkerShare worker_share(const std::string& text) {
  if (text.empty()) {
    const auto worker = config::worker_from_environment();
    if (worker && worker->count > 1) {
      std::cerr << fmt::format("worker {} of {} (from Slurm; counted from 0)\n", worker->index, worker->count);
    }
    return worker ? data::WorkerShare{worker->index, worker->count} : data::WorkerShare{};
  }
  data::WorkerShare share;
  int used = 0;
  if (std::sscanf(text.c_str(), "%ld/%ld%n", &share.index, &share.count, &used) != 2 ||
      used != static_cast<int>(text.size()) || share.index < 0 || share.index >= share.count) {
    user_error("--worker '{}': write i/n with i from 0 to n-1", text);
  }
  return share;
}

ProgressLine::ProgressLine() : terminal_(::isatty(STDERR_FILENO) != 0) {}

void ProgressLine::show(const std::string& text, bool now) {
  const double time = monotonic_seconds();
  if (!now && time - shown_at_ < (terminal_ ? 0.2 : 5.0)) return;
  shown_at_ = time;
  std::cerr << (terminal_ ? "\r\033[K" : "") << text << (terminal_ ? "" : "\n") << std::flush;
  open_ = terminal_;
}

void ProgressLine::end() {
  if (open_) std::cerr << "\r\033[K" << std::flush;
  open_ = false;
}

void ProgressLine::warn(const std::string& warning) {
  end();
  std::cerr << "warning: " << warning << '\n';
}

void print_skipped(const data::BadLines& skipped) {
  for (int i = 0; i < data::kBadLineKinds; ++i) {
    const auto kind = static_cast<data::BadLine>(i);
    if (skipped.count(kind) == 0) continue;
    std::string examples;
    for (const std::string& place : skipped.examples(kind)) examples += (examples.empty() ? "" : ", ") + place;
    const bool more = skipped.count(kind) > std::ssize(skipped.examples(kind));
    std::cout << fmt::format("skipped {}: {} ({}{})\n", skipped.count(kind), name_of(kind), examples,
                             more ? ", ..." : "");
  }
}

}  // namespace megalith::cli
