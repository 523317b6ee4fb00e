#pragma once

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <iostream>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "config/environment.h"
#include "core/clock.h"
#include "core/error.h"
#include "core/thread_pool.h"
#include "data/prepare/prepare.h"

// What the verbs that read text have in common.
namespace megalith::cli {

inline void add_tokenizer_options(CLI::App& verb, config::Tokenizer& tokenizer) {
  verb.add_option("--tokenizer-type", tokenizer.type,
                  "ByteTokenizer, GPT2BPETokenizer, HuggingFaceTokenizer, TikTokenizer")
      ->capture_default_str();
  verb.add_option("--vocab-file", tokenizer.vocab_file, "GPT-2's vocab.json");
  verb.add_option("--merge-file", tokenizer.merge_file, "GPT-2's merges.txt");
  verb.add_option("--tokenizer-model", tokenizer.model, "a tokenizer.json, or a tiktoken file");
  verb.add_option("--tiktoken-pattern", tokenizer.tiktoken_pattern, "r50k, cl100k, o200k or llama3");
}

// What is read, and what becomes of lines that are wrong.
struct TextOptions {
  std::vector<std::string> keep;
  data::OnError on_error = data::OnError::fail;
  data::BadText bad_text = data::BadText::reject;
  data::ReadOptions read;
  int64_t max_document_bytes = data::EncodeOptions{}.max_document_bytes;

  std::vector<data::FieldFilter> filters() const {
    std::vector<data::FieldFilter> all;
    for (const std::string& text : keep) all.push_back(data::parse_field_filter(text));
    return all;
  }
};

inline void add_text_options(CLI::App& verb, TextOptions& options) {
  const std::map<std::string, data::OnError> on_error{{"fail", data::OnError::fail}, {"skip", data::OnError::skip}};
  verb.add_option("--keep", options.keep, "keep documents whose field is one of these: PATH=VALUE,VALUE,...");
  verb.add_option("--on-error", options.on_error, "fail at a bad line or file, or skip and count it")
      ->transform(CLI::CheckedTransformer(on_error, CLI::ignore_case))
      ->default_str("fail");
  verb.add_option("--max-document-bytes", options.max_document_bytes, "a longer line is a bad line")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  verb.add_option("--zstd-window-log", options.read.zstd_window_log, "largest window of a zstd file, as a power of two")
      ->check(CLI::Range(10, 31))
      ->capture_default_str();
}

inline void add_bad_text_option(CLI::App& verb, TextOptions& options) {
  const std::map<std::string, data::BadText> bad_text{{"reject", data::BadText::reject},
                                                      {"replace", data::BadText::replace}};
  verb.add_option("--bad-text", options.bad_text,
                  "invalid UTF-8 and lone surrogates: reject the line, or replace by U+FFFD")
      ->transform(CLI::CheckedTransformer(bad_text, CLI::ignore_case))
      ->default_str("reject");
}

// How documents become tokens.
struct TokenOptions {
  bool append_eod = false;
  bool prepend_bos = false;
  std::string special;

  void apply(const data::Tokenizer& tokenizer, data::EncodeOptions& encode) const {
    encode.append_eod = append_eod;
    if (prepend_bos) {
      if (tokenizer.bos() < 0) user_error("--prepend-bos: {} has no token that begins a document", tokenizer.name());
      encode.bos = tokenizer.bos();
    }
    encode.look_for_special_text = !special.empty();
    if (special == "encode") encode.special_text = data::SpecialText::encode;
    if (special == "reject") encode.special_text = data::SpecialText::reject;
  }
};

inline void add_token_options(CLI::App& verb, TokenOptions& options) {
  verb.add_flag("--append-eod", options.append_eod, "end every document with the end-of-document token");
  verb.add_flag("--prepend-bos", options.prepend_bos, "begin every document with the tokenizer's first token");
  verb.add_option("--special-in-text", options.special,
                  "strings like <|endoftext|> in a text: plain characters (counted), encode as the token, or reject")
      ->check(CLI::IsMember({"plain", "encode", "reject"}));
}

// "i/n", else what Slurm says, else the only one.
inline data::WorkerShare worker_share(const std::string& text) {
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

// One line that is rewritten on a terminal, and a plain line now and then elsewhere.
class ProgressLine {
 public:
  void show(const std::string& text, bool now = false) {
    const double time = monotonic_seconds();
    if (!now && time - shown_at_ < (terminal_ ? 0.2 : 5.0)) return;
    shown_at_ = time;
    std::cerr << (terminal_ ? "\r\033[K" : "") << text << (terminal_ ? "" : "\n") << std::flush;
    open_ = terminal_;
  }
  // Ends a line that is being rewritten, so that something else can be said.
  void end() {
    if (open_) std::cerr << "\r\033[K" << std::flush;
    open_ = false;
  }

 private:
  bool terminal_ = ::isatty(STDERR_FILENO) != 0;
  double shown_at_ = monotonic_seconds();
  bool open_ = false;
};

inline std::string format_progress(const data::PrepareProgress& p) {
  const double share =
      p.bytes_total > 0 ? 100.0 * static_cast<double>(p.bytes) / static_cast<double>(p.bytes_total) : 0;
  const double text_rate = p.seconds > 0.0 ? static_cast<double>(p.text_bytes) / 1e6 / p.seconds : 0.0;
  return fmt::format("{:.1f}% of {:.1f} MB, {} documents, {} tokens, {:.1f} MB/s in, {:.1f} MB/s of text, {} left",
                     share, static_cast<double>(p.bytes_total) / 1e6, p.documents, p.tokens, p.bytes_per_second() / 1e6,
                     text_rate, p.seconds_left() < 0.0 ? "?" : format_duration(p.seconds_left()));
}

inline void print_skipped(const data::BadLines& skipped) {
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
