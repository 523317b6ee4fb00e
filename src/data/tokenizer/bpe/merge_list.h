#pragma once

#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "data/tokenizer/bpe/bpe_model.h"

namespace megalith::data {

// Turns the merges of a file, written in the byte alphabet, into pairs of ids.
class MergeList {
 public:
  // `tokens` by id; must outlive the list.
  MergeList(const std::vector<std::string>& tokens, std::string source);

  // Data error that names `place` if a side or the result is no token.
  void add(std::string_view left, std::string_view right, std::string_view place);
  // Both in one string, with a space between.
  void add(std::string_view both, std::string_view place);

  std::vector<BpeVocabulary::Pair> take() { return std::move(pairs_); }

 private:
  int32_t id_of(std::string_view bytes, std::string_view place) const;

  std::string source_;
  std::unordered_map<std::string_view, int32_t> ids_;
  std::vector<BpeVocabulary::Pair> pairs_;
};

}  // namespace megalith::data
