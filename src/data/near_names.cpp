#include "data/near_names.h"

#include <algorithm>
#include <utility>

#include "config/suggest.h"

namespace megalith::data {

std::vector<std::string> near_names(std::string_view wanted, const std::vector<std::string>& known, size_t most) {
  std::vector<std::pair<int64_t, std::string>> found;
  for (const std::string& name : known) {
    const int64_t distance = config::edit_distance(wanted, name);
    const bool begins = wanted.size() >= 3 && (name.starts_with(wanted) || wanted.starts_with(name));
    if (distance <= std::max<int64_t>(2, std::ssize(wanted) / 4) || begins) found.emplace_back(distance, name);
  }
  std::sort(found.begin(), found.end());
  std::vector<std::string> names;
  for (size_t i = 0; i < std::min(most, found.size()); ++i) names.push_back(found[i].second);
  return names;
}

}  // namespace megalith::data
