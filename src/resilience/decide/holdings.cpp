#include "resilience/decide/holdings.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <set>

namespace megalith::resilience {

namespace {
constexpr int64_t kMaxParts = int64_t{1} << 20;

// "0-3,7".
std::string ranges_text(const std::vector<int64_t>& numbers) {
  std::string text;
  for (size_t begin = 0; begin < numbers.size();) {
    size_t end = begin + 1;
    while (end < numbers.size() && numbers[end] == numbers[end - 1] + 1) ++end;
    if (!text.empty()) text += ',';
    text +=
        end == begin + 1 ? fmt::format("{}", numbers[begin]) : fmt::format("{}-{}", numbers[begin], numbers[end - 1]);
    begin = end;
  }
  return text;
}

class Scanner {
 public:
  explicit Scanner(std::string_view text) : text_(text) {}

  bool is_over() const { return text_.empty(); }
  bool skip(std::string_view expected) {
    if (!text_.starts_with(expected)) return false;
    text_.remove_prefix(expected.size());
    return true;
  }
  std::optional<int64_t> number() {
    int64_t value = 0;
    const auto [end, error] = std::from_chars(text_.data(), text_.data() + text_.size(), value);
    if (error != std::errc() || value < 0) return std::nullopt;
    text_.remove_prefix(static_cast<size_t>(end - text_.data()));
    return value;
  }
  std::string_view word() {
    const std::string_view found = text_.substr(0, text_.find(' '));
    text_.remove_prefix(found.size());
    return found;
  }
  std::optional<std::vector<int64_t>> ranges() {
    std::vector<int64_t> numbers;
    do {
      const std::optional<int64_t> first = number();
      const std::optional<int64_t> last = first && skip("-") ? number() : first;
      if (!last || *last < *first || *last >= kMaxParts || (!numbers.empty() && *first <= numbers.back())) {
        return std::nullopt;
      }
      for (int64_t n = *first; n <= *last; ++n) numbers.push_back(n);
    } while (skip(","));
    return numbers;
  }

 private:
  std::string_view text_;
};

std::optional<Holding> scan_holding(Scanner& scan) {
  const std::optional<Tier> tier = tier_named(scan.word());
  if (!tier || !scan.skip(" ")) return std::nullopt;
  const std::optional<int64_t> step = scan.number();
  if (!step || !scan.skip(" g")) return std::nullopt;
  const std::optional<int64_t> generation = scan.number();
  if (!generation || !scan.skip(" ")) return std::nullopt;
  std::optional<std::vector<int64_t>> held = scan.ranges();
  if (!held || !scan.skip("/")) return std::nullopt;
  const std::optional<int64_t> parts = scan.number();
  if (!parts || *parts <= held->back()) return std::nullopt;
  return Holding{.step = *step, .generation = *generation, .tier = *tier, .parts = *parts, .held = *std::move(held)};
}
}  // namespace

std::string to_text(std::span<const Holding> holdings) {
  std::string text;
  for (const Holding& holding : holdings) {
    if (holding.held.empty()) continue;
    if (!text.empty()) text += "; ";
    text += fmt::format("{} {} g{} {}/{}", name_of(holding.tier), holding.step, holding.generation,
                        ranges_text(holding.held), holding.parts);
  }
  return text;
}

std::optional<std::vector<Holding>> parse_holdings(std::string_view text) {
  std::vector<Holding> holdings;
  Scanner scan(text);
  while (!scan.is_over()) {
    if (!holdings.empty() && !scan.skip("; ")) return std::nullopt;
    std::optional<Holding> holding = scan_holding(scan);
    if (!holding) return std::nullopt;
    holdings.push_back(*std::move(holding));
  }
  return holdings;
}

int64_t newest_covered_step(std::span<const std::vector<Holding>> nodes, const IsValid& is_valid) {
  struct Cover {
    int64_t parts = 0;
    std::set<int64_t> held;
  };
  std::map<std::pair<int64_t, int64_t>, Cover> covers;  // by step and generation
  for (const std::vector<Holding>& node : nodes) {
    for (const Holding& holding : node) {
      if (!is_valid(holding)) continue;
      Cover& cover = covers[{holding.step, holding.generation}];
      cover.parts = std::max(cover.parts, holding.parts);
      cover.held.insert(holding.held.begin(), holding.held.end());
    }
  }
  for (auto cover = covers.rbegin(); cover != covers.rend(); ++cover) {
    if (static_cast<int64_t>(cover->second.held.size()) >= cover->second.parts) return cover->first.first;
  }
  return -1;
}

}  // namespace megalith::resilience
