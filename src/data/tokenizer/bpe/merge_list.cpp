#include "data/tokenizer/bpe/merge_list.h"

#include "core/error.h"
#include "data/tokenizer/byte_alphabet.h"

namespace megalith::data {

MergeList::MergeList(const std::vector<std::string>& tokens, std::string source) : source_(std::move(source)) {
  ids_.reserve(tokens.size());
  for (size_t id = 0; id < tokens.size(); ++id) {
    if (!tokens[id].empty()) ids_.emplace(tokens[id], static_cast<int32_t>(id));
  }
}

int32_t MergeList::id_of(std::string_view bytes, std::string_view place) const {
  const auto at = ids_.find(bytes);
  if (at == ids_.end()) {
    data_error("{}: {}: \"{}\" is not in the vocabulary", source_, place, to_byte_alphabet(bytes));
  }
  return at->second;
}

void MergeList::add(std::string_view left, std::string_view right, std::string_view place) {
  const auto left_bytes = from_byte_alphabet(left), right_bytes = from_byte_alphabet(right);
  if (!left_bytes || !right_bytes || left_bytes->empty() || right_bytes->empty()) {
    data_error("{}: {}: not two tokens of a byte-level vocabulary", source_, place);
  }
  pairs_.push_back({id_of(*left_bytes, place), id_of(*right_bytes, place), id_of(*left_bytes + *right_bytes, place)});
}

void MergeList::add(std::string_view both, std::string_view place) {
  const size_t space = both.find(' ');
  if (space == std::string_view::npos) data_error("{}: {}: not two tokens with a space between", source_, place);
  add(both.substr(0, space), both.substr(space + 1), place);
}

}  // namespace megalith::data
