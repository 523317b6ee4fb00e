#include "config/suggest.h"

#include <algorithm>

#include "config/keys.h"
#include "config/known_keys.h"

namespace megalith::config {
namespace {

std::string_view last_word(std::string_view path) {
  const size_t dot = path.rfind('.');
  return dot == std::string_view::npos ? path : path.substr(dot + 1);
}

constexpr size_t kLongest = 200;

// More than a third of the letters wrong is another word.
int64_t most_wrong(std::string_view word) {
  return std::max<int64_t>(2, static_cast<int64_t>(word.size()) / 3);
}

}  // namespace

int64_t edit_distance(std::string_view a, std::string_view b) {
  const size_t width = b.size() + 1;
  std::vector<int64_t> before(width), previous(width), row(width);
  for (size_t j = 0; j < width; ++j) row[j] = static_cast<int64_t>(j);
  for (size_t i = 1; i <= a.size(); ++i) {
    std::swap(before, previous);
    std::swap(previous, row);
    row[0] = static_cast<int64_t>(i);
    for (size_t j = 1; j < width; ++j) {
      const int64_t replaced = previous[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      row[j] = std::min({replaced, previous[j] + 1, row[j - 1] + 1});
      const bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (swapped) row[j] = std::min(row[j], before[j - 2] + 1);
    }
  }
  return row[b.size()];
}

std::optional<std::string> nearest_name(std::string_view word, const std::vector<std::string>& names) {
  if (word.empty() || word.size() > kLongest) return std::nullopt;
  std::optional<std::string> best;
  int64_t best_cost = most_wrong(word) + 1;
  for (const std::string& name : names) {
    const int64_t cost = name.starts_with(word) ? 1 : edit_distance(word, name);
    if (cost >= best_cost || cost >= static_cast<int64_t>(name.size())) continue;
    best_cost = cost;
    best = name;
  }
  return best;
}

std::optional<std::string> nearest_key(std::string_view path) {
  if (path.empty() || path.size() > kLongest) return std::nullopt;
  Run run;
  std::vector<std::string_view> candidates;
  for (const Key& key : keys_of(run)) candidates.push_back(key.path);
  for (const KnownKey& key : known_keys()) {
    if (!key.pattern.ends_with('*')) candidates.push_back(key.pattern);
  }

  std::optional<std::string> best;
  int64_t best_cost = most_wrong(path) + 1;
  for (const auto candidate : candidates) {
    int64_t cost = edit_distance(path, candidate);
    const int64_t word_cost = edit_distance(last_word(path), last_word(candidate));
    // The name is what people remember; they forget the section.
    if (word_cost <= static_cast<int64_t>(last_word(path).size()) / 4) cost = std::min(cost, 1 + 2 * word_cost);
    if (cost < best_cost) {
      best_cost = cost;
      best = std::string(candidate);
    }
  }
  return best;
}

}  // namespace megalith::config
