#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "data/tokenizer/bpe/pair_table.h"
#include "data/tokenizer/token_table.h"

namespace megalith::data {

// What decides a merge. The two give the same ids for GPT-2, and almost the same for Llama-3.
enum class BpeReference {
  tiktoken,    // any two neighbours whose bytes together are a token merge; the token's id is the rank
  merge_list,  // the pairs of a list merge, in its order
};
std::string_view reference_name(BpeReference reference);

// A vocabulary as its files say it.
struct BpeVocabulary {
  struct Pair {
    int32_t left = 0;
    int32_t right = 0;
    int32_t result = 0;
  };

  BpeReference reference = BpeReference::merge_list;
  std::vector<std::string> tokens;  // by id, as bytes; empty: no token
  std::vector<Pair> merges;         // first merges first; none in tiktoken's mode
  bool whole_pieces = false;        // a piece that is a token is not merged (`ignore_merges`); always so in tiktoken's
};

// Byte-level BPE as tables. Never changes, so that threads share it.
class BpeModel {
 public:
  // Data error, with `source` in front, if the tables cannot work: a byte without token, bytes that two ids share.
  BpeModel(BpeVocabulary vocabulary, const std::string& source);

  BpeReference reference() const { return reference_; }
  const TokenTable& tokens() const { return tokens_; }
  int32_t byte_id(char byte) const { return byte_ids_[static_cast<unsigned char>(byte)]; }

  Merge find_merge(int32_t left, int32_t right) const { return pairs_.find(left, right); }
  // find_merge of the tokens of two bytes.
  Merge find_byte_merge(char left, char right) const {
    return byte_merges_[static_cast<size_t>(static_cast<unsigned char>(left)) << 8 | static_cast<unsigned char>(right)];
  }
  // The id that a whole piece is known to become; -1: merge it.
  int32_t find_piece(std::string_view piece) const { return tokens_.find(piece); }

 private:
  void index_bytes(const std::vector<std::string>& tokens, const std::string& source);
  void index_pieces(const BpeVocabulary& vocabulary);

  BpeReference reference_;
  TokenTable tokens_;
  PairTable pairs_;
  std::array<int32_t, 256> byte_ids_{};
  std::vector<Merge> byte_merges_;
};

}  // namespace megalith::data
