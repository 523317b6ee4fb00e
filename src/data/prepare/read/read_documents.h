#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "data/prepare/read/input_list.h"
#include "data/tokenizer/tokenizer.h"

namespace megalith::data {

struct TextDocument {
  std::filesystem::path file;
  int64_t number = 0;        // in its file, from 1
  std::vector<int32_t> ids;  // without a token that begins or ends it
  int64_t bytes = 0;         // of the text that these ids stand for
};

struct ReadDocuments {
  std::vector<std::string> inputs;  // files and glob patterns, as `data prepare` takes them
  std::string json_key = "text";
  TextDocuments text_documents = TextDocuments::whole_file;
};

// Hands over the documents of text and JSON lines files one by one, in order. Empty ones are left out. Errors as
// prepare() has them, with file and line.
void read_documents(const Tokenizer& tokenizer, const ReadDocuments& what,
                    const std::function<void(const TextDocument&)>& take);

}  // namespace megalith::data
