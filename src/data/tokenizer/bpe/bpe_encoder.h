#pragma once

#include <array>
#include <memory>
#include <string_view>
#include <vector>

#include "data/tokenizer/bpe/bpe_merger.h"
#include "data/tokenizer/bpe/bpe_model.h"
#include "data/tokenizer/bpe/phrase_cache.h"
#include "data/tokenizer/bpe/word_cache.h"
#include "data/tokenizer/scan/scanner.h"

namespace megalith::data {

// Encodes plain text with a model and a grammar: scans pieces, looks them up, merges those that are new. One per
// thread.
class BpeEncoder {
 public:
  BpeEncoder(std::shared_ptr<const BpeModel> model, Grammar grammar);

  const std::shared_ptr<const BpeModel>& model() const { return model_; }

  // Appends the ids of `text`.
  void encode(std::string_view text, std::vector<int32_t>& ids);
  // The same for a text that goes on behind `text`: appends the ids of the pieces that do not depend on what follows,
  // and returns how many bytes they have.
  size_t encode_settled(std::string_view text, std::vector<int32_t>& ids);
  // Appends the ids of one piece.
  void encode_piece(std::string_view piece, std::vector<int32_t>& ids);

 private:
  static constexpr size_t kMostPieces = Scanner::kBatch + Scanner::kSlack;
  struct Lookup {
    WordCache::Key key;
    size_t place;
  };

  void encode_pieces(const char* text, const char* end, size_t count, std::vector<int32_t>& ids);
  void merge_piece(std::string_view piece, const Lookup& lookup);

  std::shared_ptr<const BpeModel> model_;
  Grammar grammar_;
  Scanner scanner_;
  WordCache cache_;
  PhraseCache phrases_;
  BpeMerger merger_;
  std::array<const char*, kMostPieces> ends_;
  std::array<Lookup, kMostPieces> lookups_;
  std::array<int32_t, kMostPieces * WordCache::kMostIds> batch_ids_;
  std::vector<int32_t> piece_ids_;
};

}  // namespace megalith::data
