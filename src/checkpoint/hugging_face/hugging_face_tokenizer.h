#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "config/run_config.h"
#include "data/order/dataset.h"

namespace megalith::checkpoint {

// The files of a Hugging Face directory that say how text becomes tokens, and how generated text ends:
//   tokenizer.json, or vocab.json and merges.txt, and tokenizer_config.json  without which AutoTokenizer does not know
//                                                                            the class of the latter
//   generation_config.json                                                   the token that ends a text

struct TokenizerExport {
  const config::Tokenizer& tokenizer;
  data::Vocabulary vocabulary;
  int64_t max_length = 0;  // that the model can read
};

struct TokenizerFilesWritten {
  std::vector<std::string> names;
  std::vector<std::string> notes;  // what could not be written
};
TokenizerFilesWritten write_hugging_face_tokenizer(const TokenizerExport& what, const std::filesystem::path& directory);

// What the directory holds; a NullTokenizer where it holds none that is known.
config::Tokenizer find_hugging_face_tokenizer(const std::filesystem::path& directory, int64_t vocabulary);

}  // namespace megalith::checkpoint
