#include "data/splits.h"

#include <charconv>
#include <cmath>
#include <vector>

#include "core/error.h"

namespace megalith::data {

std::string_view name_of(Split split) {
  switch (split) {
    case Split::train:
      return "train";
    case Split::valid:
      return "valid";
    case Split::test:
      return "test";
  }
  return "?";
}

Splits::Splits(std::string_view text) : text_(text) {
  constexpr std::string_view kNumber = ".0123456789";
  std::vector<double> shares;
  for (size_t begin = text.find_first_of(kNumber); begin != std::string_view::npos;) {
    size_t end = text.find_first_not_of(kNumber, begin);
    if (end == std::string_view::npos) end = text.size();
    double share = 0.0;
    const auto [stop, status] = std::from_chars(text.data() + begin, text.data() + end, share);
    if (status != std::errc() || stop != text.data() + end) {
      user_error("splits \"{}\": {} is not a number", text, text.substr(begin, end - begin));
    }
    shares.push_back(share);
    begin = text.find_first_of(kNumber, end);
  }
  double sum = 0.0;
  for (const double share : shares) sum += share;
  if (shares.size() > 3 || !(sum > 0.0)) {
    user_error("splits \"{}\": expected up to three shares (train, valid, test), not all 0, such as \"969, 30, 1\"",
               text);
  }
  shares.resize(3, 0.0);
  for (size_t i = 0; i < 3; ++i) bounds_[i + 1] = bounds_[i] + shares[i] / sum;
}

SequenceRange Splits::range(Split split, int64_t sequences) const {
  const auto i = static_cast<size_t>(split);
  const auto cut = [sequences](double fraction) {
    return static_cast<int64_t>(std::nearbyint(fraction * static_cast<double>(sequences)));
  };
  if (bounds_[i + 1] <= bounds_[i]) return {cut(bounds_[i]), cut(bounds_[i])};
  return {cut(bounds_[i]), cut(bounds_[i + 1])};
}

}  // namespace megalith::data
