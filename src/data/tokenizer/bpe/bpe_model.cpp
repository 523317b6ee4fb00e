#include "data/tokenizer/bpe/bpe_model.h"

#include <unordered_map>

#include "core/error.h"
#include "data/tokenizer/bpe/bpe_merger.h"

namespace megalith::data {

namespace {
using IdOf = std::unordered_map<std::string_view, int32_t>;

IdOf ids_of(const std::vector<std::string>& tokens, const std::string& source) {
  IdOf ids;
  ids.reserve(tokens.size());
  for (size_t id = 0; id < tokens.size(); ++id) {
    if (tokens[id].empty()) continue;
    const auto [at, fresh] = ids.try_emplace(tokens[id], static_cast<int32_t>(id));
    if (!fresh) data_error("{}: ids {} and {} are the same token", source, at->second, id);
  }
  return ids;
}

// Every way to cut a token into two tokens is a pair that merges to it.
std::vector<BpeVocabulary::Pair> all_pairs(const std::vector<std::string>& tokens, const std::string& source) {
  const IdOf ids = ids_of(tokens, source);
  std::vector<BpeVocabulary::Pair> pairs;
  for (size_t id = 0; id < tokens.size(); ++id) {
    const std::string_view token = tokens[id];
    for (size_t cut = 1; cut < token.size(); ++cut) {
      const auto left = ids.find(token.substr(0, cut));
      if (left == ids.end()) continue;
      const auto right = ids.find(token.substr(cut));
      if (right != ids.end()) pairs.push_back({left->second, right->second, static_cast<int32_t>(id)});
    }
  }
  return pairs;
}

std::vector<BpeVocabulary::Pair> pairs_of(BpeVocabulary& vocabulary, const std::string& source) {
  if (vocabulary.reference == BpeReference::tiktoken) return all_pairs(vocabulary.tokens, source);
  ids_of(vocabulary.tokens, source);
  return std::move(vocabulary.merges);
}
}  // namespace

std::string_view reference_name(BpeReference reference) {
  return reference == BpeReference::tiktoken ? "tiktoken" : "merge-list";
}

BpeModel::BpeModel(BpeVocabulary vocabulary, const std::string& source)
    : reference_(vocabulary.reference), tokens_(vocabulary.tokens), pairs_(0) {
  index_bytes(vocabulary.tokens, source);
  const std::vector<BpeVocabulary::Pair> pairs = pairs_of(vocabulary, source);
  pairs_ = PairTable(pairs.size());
  for (size_t i = 0; i < pairs.size(); ++i) {
    const auto [left, right, result] = pairs[i];
    const auto rank = reference_ == BpeReference::tiktoken ? static_cast<uint32_t>(result) : static_cast<uint32_t>(i);
    if (!pairs_.insert(left, right, make_merge(rank, result))) {
      data_error("{}: merge {} is listed twice", source, i + 1);
    }
  }
  byte_merges_.resize(1 << 16);
  for (size_t i = 0; i < byte_merges_.size(); ++i) {
    byte_merges_[i] = pairs_.find(byte_ids_[i >> 8], byte_ids_[i & 0xFF]);
  }
  index_pieces(vocabulary);
}

void BpeModel::index_bytes(const std::vector<std::string>& tokens, const std::string& source) {
  byte_ids_.fill(-1);
  for (size_t id = 0; id < tokens.size(); ++id) {
    if (tokens[id].size() == 1) byte_ids_[static_cast<unsigned char>(tokens[id][0])] = static_cast<int32_t>(id);
  }
  for (size_t byte = 0; byte < byte_ids_.size(); ++byte) {
    if (byte_ids_[byte] < 0)
      data_error("{}: no token for byte {}, so that not every text can be encoded", source, byte);
  }
}

void BpeModel::index_pieces(const BpeVocabulary& vocabulary) {
  const bool all = vocabulary.whole_pieces || reference_ == BpeReference::tiktoken;
  BpeMerger merger;
  std::vector<int32_t> ids;
  for (size_t i = 0; i < vocabulary.tokens.size(); ++i) {
    const std::string& token = vocabulary.tokens[i];
    const auto id = static_cast<int32_t>(i);
    if (token.empty()) continue;
    // Some vocabularies hold tokens that their merges never make: those are not what the piece becomes.
    if (!all) {
      ids.clear();
      merger.merge(*this, token, ids);
      if (ids != std::vector<int32_t>{id}) continue;
    }
    tokens_.index(id);
  }
}

}  // namespace megalith::data
