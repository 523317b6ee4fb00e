#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "data/tokenizer/bpe/bpe_model.h"
#include "data/tokenizer/scan/grammar.h"

namespace megalith::data {

// What the files of a byte-level BPE tokenizer say, whatever their format.
struct TokenizerFiles {
  std::string name;    // as in model.tokenizer.type
  std::string source;  // the files, for messages
  std::string digest;  // XXH3 of all their bytes
  Grammar grammar = Grammar::gpt2;
  bool nfc = false;  // text is normalised first
  BpeVocabulary vocabulary;
  std::vector<std::pair<std::string, int32_t>> specials;
  int64_t vocab_size = 0;
  int32_t eod = -1;
  int32_t bos = -1;  // -1: none
};

// All readers: data error with the file and the reason for anything that is not what it should be.

// GPT-2's vocab.json and merges.txt.
TokenizerFiles read_gpt2(const std::filesystem::path& vocab, const std::filesystem::path& merges);

// A tiktoken rank file, which says neither its pattern nor its special tokens: `pattern` is r50k, cl100k, o200k or
// llama3 (user error otherwise) and decides both.
TokenizerFiles read_tiktoken(const std::filesystem::path& path, const std::string& pattern);

// A Hugging Face tokenizer.json, or the directory that holds it, of a byte-level BPE with a known pattern. `eod` is the
// token that ends a document; empty: <|end_of_text|> or <|endoftext|>.
TokenizerFiles read_hugging_face(const std::filesystem::path& path, const std::string& eod = "");

// For the readers.
namespace files {
// The longest token and the largest file that are believed: more is an attack or an accident.
inline constexpr size_t kLongestToken = 1024;
inline constexpr int64_t kLargestFile = int64_t{256} << 20;

std::string read(const std::filesystem::path& path);
std::string digest_of(const std::vector<std::string_view>& contents);
// Puts a token at its id. `entries`: how many tokens there are, which bounds the ids.
void place_token(std::vector<std::string>& tokens, int64_t id, std::string token, size_t entries,
                 const std::string& source);
}  // namespace files

}  // namespace megalith::data
