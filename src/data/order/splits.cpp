#include "data/order/splits.h"

#include <cmath>

#include "config/derived.h"

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
  const std::array<double, 3> shares = config::parse_splits(text);
  for (size_t i = 0; i < shares.size(); ++i) bounds_[i + 1] = bounds_[i] + shares[i];
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
