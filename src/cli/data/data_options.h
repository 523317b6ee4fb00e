#pragma once

#include <CLI/App.hpp>
#include <string>
#include <vector>

#include "core/clock.h"
#include "data/prepare/prepare.h"

// What the verbs that read text have in common.
namespace megalith::cli {

void add_tokenizer_options(CLI::App& verb, config::Tokenizer& tokenizer);
// Whether any of these options was given.
bool names_tokenizer(const CLI::App& verb);
// The type where only files are given. User errors: files that do not say which type is meant, or that it does not use.
void settle_tokenizer(const CLI::App& verb, config::Tokenizer& tokenizer);

// What is read, and what becomes of lines that are wrong.
struct TextOptions {
  std::vector<std::string> keep;
  data::OnError on_error = data::OnError::fail;
  data::ReadOptions read;
  int64_t max_document_bytes = data::EncodeOptions{}.max_document_bytes;

  std::vector<data::FieldFilter> filters() const;
};
void add_text_options(CLI::App& verb, TextOptions& options);

// Which texts are read, and how.
struct ReadVerb {
  TextOptions text;
  data::PrepareOptions prepare;
  std::string input_list;
  bool split_paragraphs = false;

  // Puts what was given into `prepare`.
  void settle();
};
void add_read_options(CLI::App& verb, ReadVerb& options);
// --input and --input-list, and the lines of the latter.
void add_input_options(CLI::App& verb, std::vector<std::string>& inputs, std::string& input_list);
void read_input_list(const std::string& path, std::vector<std::string>& inputs);

// Text to tokens: what `prepare` and `tokenize` have in common.
struct EncodeVerb : ReadVerb {
  config::Tokenizer tokenizer;
  bool prepend_bos = false;
  std::string special;
  std::string made_with;  // the tokenizer, described by run()

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
