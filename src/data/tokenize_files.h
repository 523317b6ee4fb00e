#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "data/tokenizer.h"

namespace megalith::data {

// What is done so far, or in all.
struct TokenizeCounts {
  int64_t documents = 0;        // empty ones included
  int64_t empty_documents = 0;  // without tokens, and so without eod
  int64_t tokens = 0;           // eod included
  int64_t bytes = 0;            // of input
  double seconds = 0.0;

  double documents_per_second() const { return seconds > 0.0 ? static_cast<double>(documents) / seconds : 0.0; }
  double megabytes_per_second() const { return seconds > 0.0 ? static_cast<double>(bytes) / 1e6 / seconds : 0.0; }
};

enum class InputFormat {
  by_name,  // .jsonl and .json: JSON lines; .txt: text; anything else is refused
  text,
  json_lines,
};

enum class TextDocuments {
  whole_file,
  blank_lines,  // documents are separated by one or more lines of nothing but white space
};

struct TokenizeOptions {
  std::vector<std::filesystem::path> inputs;
  std::string output_prefix;
  std::vector<std::string> json_keys = {"text"};
  InputFormat format = InputFormat::by_name;
  TextDocuments text_documents = TextDocuments::whole_file;
  bool append_eod = true;
  bool overwrite = false;
  int64_t log_every = 1000;  // documents
  std::function<void(const TokenizeCounts&)> log;
};

// Text to Megatron's files: `<output_prefix>_<key>_document.bin` and `.idx` for each key, documents in the order of the
// inputs. JSON lines hold one object each with a string under each key; anything else is a data error that names file
// and line. Plain text goes under the single key. An error leaves no output.
TokenizeCounts tokenize_files(const Tokenizer& tokenizer, const TokenizeOptions& options);

// `<output_prefix>_<key>_document`.
std::string tokenized_prefix(const std::string& output_prefix, const std::string& key);

}  // namespace megalith::data
