#include "data/tokenizer/token_table.h"

#include <algorithm>
#include <bit>
#include <limits>

#include "core/error.h"
#include "core/hash/digest.h"

namespace megalith::data {

namespace {
uint32_t hash_of(std::string_view bytes) {
  return static_cast<uint32_t>(hash64(bytes));
}
}  // namespace

TokenTable::TokenTable(const std::vector<std::string>& tokens) {
  begins_.reserve(tokens.size() + 1);
  for (const std::string& token : tokens) {
    begins_.push_back(static_cast<uint32_t>(bytes_.size()));
    bytes_ += token;
    longest_ = std::max(longest_, token.size());
    if (bytes_.size() > std::numeric_limits<uint32_t>::max()) data_error("the tokens of a vocabulary exceed 4 GiB");
  }
  begins_.push_back(static_cast<uint32_t>(bytes_.size()));
  slots_.resize(std::bit_ceil(std::max<size_t>(16, 2 * tokens.size())));
}

TokenTable::Slot& TokenTable::slot_of(std::string_view wanted, uint32_t hash) {
  size_t at = hash & (slots_.size() - 1);
  while (slots_[at].id >= 0 && (slots_[at].hash != hash || bytes(slots_[at].id) != wanted)) {
    at = (at + 1) & (slots_.size() - 1);
  }
  return slots_[at];
}

void TokenTable::index(int32_t id) {
  const uint32_t hash = hash_of(bytes(id));
  Slot& slot = slot_of(bytes(id), hash);
  MEGALITH_CHECK(slot.id < 0 || slot.id == id, "ids {} and {} have the same bytes", slot.id, id);
  slot = {hash, id};
}

int32_t TokenTable::find(std::string_view wanted) const {
  if (wanted.size() > longest_) return -1;
  return const_cast<TokenTable*>(this)->slot_of(wanted, hash_of(wanted)).id;
}

}  // namespace megalith::data
