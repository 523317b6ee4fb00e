#include <charconv>
#include <string_view>

#include "config/environment/environment.h"
#include "core/error.h"

namespace megalith::config {

namespace {
constexpr size_t kMaxNodes = 1 << 20;

// Slurm's grammar: names separated by commas; each a text with at most one [list] of numbers and ranges, whose width
// (leading zeros) is that of the first number.
class NodeList {
 public:
  explicit NodeList(const std::string& text) : text_(text), rest_(text) {}

  std::vector<std::string> expand() {
    do add_name();
    while (take(','));
    if (!rest_.empty()) refuse();
    return std::move(nodes_);
  }

 private:
  void add_name() {
    const std::string prefix(take_until(",[]"));
    if (!take('[')) {
      if (prefix.empty()) refuse();
      return add(prefix);
    }
    std::vector<std::string> numbers;
    do add_range(numbers);
    while (take(','));
    if (!take(']')) refuse();
    const std::string suffix(take_until(",[]"));
    for (const std::string& number : numbers) add(fmt::format("{}{}{}", prefix, number, suffix));
  }

  void add_range(std::vector<std::string>& numbers) {
    const std::string_view first = take_until(",-]");
    const std::string_view last = take('-') ? take_until(",]") : first;
    const int64_t begin = number(first);
    const int64_t end = number(last);
    if (end < begin || static_cast<size_t>(end - begin) >= kMaxNodes - numbers.size()) refuse();
    for (int64_t each = begin; each <= end; ++each) numbers.push_back(fmt::format("{:0{}}", each, first.size()));
  }

  int64_t number(std::string_view digits) const {
    int64_t value = 0;
    const auto [end, status] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    if (status != std::errc{} || end != digits.data() + digits.size() || digits.size() > 9) refuse();
    return value;
  }

  void add(std::string node) {
    if (nodes_.size() >= kMaxNodes) refuse();
    nodes_.push_back(std::move(node));
  }

  std::string_view take_until(std::string_view stops) {
    const std::string_view taken = rest_.substr(0, rest_.find_first_of(stops));
    rest_.remove_prefix(taken.size());
    return taken;
  }

  bool take(char expected) {
    if (rest_.empty() || rest_.front() != expected) return false;
    rest_.remove_prefix(1);
    return true;
  }

  [[noreturn]] void refuse() const {
    user_error("'{}' is no Slurm node list such as node[001-004,7]; it comes from SLURM_JOB_NODELIST", text_);
  }

  const std::string& text_;
  std::string_view rest_;
  std::vector<std::string> nodes_;
};
}  // namespace

std::vector<std::string> expand_node_list(const std::string& text) {
  return NodeList(text).expand();
}

}  // namespace megalith::config
