#include "data/tokenizer/scan/special_strings.h"

#include <algorithm>

namespace megalith::data {

SpecialStrings::SpecialStrings(std::vector<std::pair<std::string, int32_t>> specials) : specials_(std::move(specials)) {
  std::erase_if(specials_, [](const auto& special) { return special.first.empty(); });
  std::stable_sort(specials_.begin(), specials_.end(),
                   [](const auto& a, const auto& b) { return a.first.size() > b.first.size(); });
  for (const auto& [text, id] : specials_) {
    if (first_bytes_.find(text[0]) == std::string::npos) first_bytes_.push_back(text[0]);
  }
}

SpecialStrings::Match SpecialStrings::find(std::string_view text, size_t from) const {
  if (first_bytes_.empty()) return {};
  const auto next = [&](size_t at) {
    return first_bytes_.size() == 1 ? text.find(first_bytes_[0], at) : text.find_first_of(first_bytes_, at);
  };
  for (size_t at = next(from); at != std::string_view::npos; at = next(at + 1)) {
    for (const auto& [special, id] : specials_) {
      if (text.substr(at, special.size()) == special) return {at, at + special.size(), id};
    }
  }
  return {};
}

}  // namespace megalith::data
