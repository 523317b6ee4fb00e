#include "data/tokenizer/bpe/bpe_encoder.h"

#include <algorithm>

namespace megalith::data {

BpeEncoder::BpeEncoder(std::shared_ptr<const BpeModel> model, Grammar grammar)
    : model_(std::move(model)), grammar_(grammar), scanner_(grammar) {}

void BpeEncoder::encode(std::string_view text, std::vector<int32_t>& ids) {
  const char* at = text.data();
  const char* const end = at + text.size();
  while (const size_t count = scanner_.scan(at, end, ends_.data())) {
    encode_pieces(at, end, count, ids);
    at = ends_[count - 1];
  }
}

size_t BpeEncoder::encode_settled(std::string_view text, std::vector<int32_t>& ids) {
  const char* at = text.data();
  const char* const end = at + text.size();
  const char* const limit = at + settled_bytes(grammar_, text);
  while (size_t count = scanner_.scan(at, end, ends_.data())) {
    count = static_cast<size_t>(std::upper_bound(ends_.begin(), ends_.begin() + count, limit) - ends_.begin());
    if (count == 0) break;
    encode_pieces(at, end, count, ids);
    at = ends_[count - 1];
  }
  return static_cast<size_t>(at - text.data());
}

void BpeEncoder::encode_piece(std::string_view piece, std::vector<int32_t>& ids) {
  Lookup lookup{WordCache::key_of(piece.data(), piece.size(), piece.size()), 0};
  lookup.place = WordCache::place_of(lookup.key);
  merge_piece(piece, lookup);
  ids.insert(ids.end(), piece_ids_.begin(), piece_ids_.end());
}

// Two passes, so that the cache lines of all pieces are on their way before the first is needed.
void BpeEncoder::encode_pieces(const char* text, const char* end, size_t count, std::vector<int32_t>& ids) {
  const char* begin = text;
  for (size_t i = 0; i < count; ++i) {
    const auto length = static_cast<size_t>(ends_[i] - begin);
    lookups_[i].key = WordCache::key_of(begin, length, static_cast<size_t>(end - begin));
    lookups_[i].place = WordCache::place_of(lookups_[i].key);
    cache_.prefetch(lookups_[i].place);
    begin = ends_[i];
  }
  int32_t* out = batch_ids_.data();
  begin = text;
  for (size_t i = 0; i < count; ++i) {
    const Lookup& lookup = lookups_[i];
    const WordCache::Entry* const entry = lookup.key.high != 0 ? cache_.find(lookup.key, lookup.place) : nullptr;
    if (entry != nullptr) [[likely]] {
      // All ids whether they count or not: a branch on their number would cost more.
      std::copy(entry->ids.begin(), entry->ids.end(), out);
      out += entry->count;
    } else {
      merge_piece({begin, static_cast<size_t>(ends_[i] - begin)}, lookup);
      if (piece_ids_.size() <= WordCache::kMostIds) {
        out = std::copy(piece_ids_.begin(), piece_ids_.end(), out);
      } else {
        ids.insert(ids.end(), batch_ids_.data(), out);
        ids.insert(ids.end(), piece_ids_.begin(), piece_ids_.end());
        out = batch_ids_.data();
      }
    }
    begin = ends_[i];
  }
  ids.insert(ids.end(), batch_ids_.data(), out);
}

// Leaves the ids of the piece in piece_ids_.
void BpeEncoder::merge_piece(std::string_view piece, const Lookup& lookup) {
  const bool phrase = PhraseCache::takes(piece);
  const size_t place = phrase ? PhraseCache::place_of(piece) : 0;
  if (phrase) {
    const auto known = phrases_.find(piece, place);
    piece_ids_.assign(known.begin(), known.end());
    if (!known.empty()) return;
  }
  piece_ids_.clear();
  const int32_t whole = model_->find_piece(piece);
  if (whole >= 0) {
    piece_ids_.push_back(whole);
  } else {
    merger_.merge(*model_, piece, piece_ids_);
  }
  if (lookup.key.high != 0 && piece_ids_.size() <= WordCache::kMostIds) {
    cache_.insert(lookup.key, lookup.place, piece_ids_);
  } else if (phrase) {
    phrases_.insert(piece, place, piece_ids_);
  }
}

}  // namespace megalith::data
