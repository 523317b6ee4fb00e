#include "data/near_names.h"

#include <algorithm>
#include <cctype>
#include <numeric>
#include <utility>

namespace megalith::data {

namespace {
size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 0; i < a.size(); ++i) {
    size_t diagonal = std::exchange(row[0], i + 1);
    for (size_t j = 0; j < b.size(); ++j) {
      const bool same =
          std::tolower(static_cast<unsigned char>(a[i])) == std::tolower(static_cast<unsigned char>(b[j]));
      const size_t replaced = diagonal + (same ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({replaced, row[j] + 1, diagonal + 1});
    }
  }
  return row.back();
}
}  // namespace

std::vector<std::string> near_names(std::string_view wanted, const std::vector<std::string>& known, size_t most) {
  std::vector<std::pair<size_t, std::string>> found;
  for (const std::string& name : known) {
    const size_t distance = edit_distance(wanted, name);
    const bool begins = wanted.size() >= 3 && (name.starts_with(wanted) || wanted.starts_with(name));
    if (distance <= std::max<size_t>(2, wanted.size() / 4) || begins) found.emplace_back(distance, name);
  }
  std::sort(found.begin(), found.end());
  std::vector<std::string> names;
  for (size_t i = 0; i < std::min(most, found.size()); ++i) names.push_back(found[i].second);
  return names;
}

}  // namespace megalith::data
