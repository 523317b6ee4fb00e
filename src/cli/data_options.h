#pragma once

#include <CLI/App.hpp>
#include <string>
#include <vector>

#include "core/clock.h"
#include "data/prepare/prepare.h"

// What the verbs that read text have in common.
namespace megalith::cli {

void add_tokenizer_options(CLI::App& verb, config::Tokenizer& tokenizer);

// What is read, and what becomes of lines that are wrong.
struct TextOptions {
  std::vector<std::string> keep;
  data::OnError on_error = data::OnError::fail;
  data::ReadOptions read;
  int64_t max_document_bytes = data::EncodeOptions{}.max_document_bytes;

  std::vector<data::FieldFilter> filters() const;
};
void add_text_options(CLI::App& verb, TextOptions& options);

// Text to tokens: what `prepare` and `tokenize` have in common.
struct EncodeVerb {
  config::Tokenizer tokenizer;
  TextOptions text;
  data::PrepareOptions prepare;
  bool prepend_bos = false;
  std::string special;
  bool split_paragraphs = false;

  // Documents between two lines of progress; 0: by time.
  data::PrepareSummary run(int64_t log_interval = 0);
};
void add_encode_options(CLI::App& verb, EncodeVerb& options);

// "i/n", else what Slurm says, else the only one.
data::WorkerShare worker_share(const std::string& text);

// One line that is rewritten on a terminal, and a plain line now and then elsewhere.
class ProgressLine {
 public:
  ProgressLine();

  void show(const std::string& text, bool now = false);
  // Ends a line that is being rewritten, so that something else can be said.
  void end();
  // On a line of its own.
  void warn(const std::string& warning);

 private:
  bool terminal_;
  double shown_at_ = monotonic_seconds();
  bool open_ = false;
};

void print_skipped(const data::BadLines& skipped);

}  // namespace megalith::cli
