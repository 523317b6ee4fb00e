#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace megalith::data {

// The strings that stand for ids of their own, such as <|endoftext|>.
class SpecialStrings {
 public:
  struct Match {
    size_t begin = 0;
    size_t end = 0;
    int32_t id = -1;
  };

  explicit SpecialStrings(std::vector<std::pair<std::string, int32_t>> specials = {});

  // The first match at or behind `from`, the longest of those that begin together; id -1 if there is none.
  Match find(std::string_view text, size_t from) const;

  const std::vector<std::pair<std::string, int32_t>>& all() const { return specials_; }

 private:
  std::vector<std::pair<std::string, int32_t>> specials_;  // longest first
  std::string first_bytes_;
};

}  // namespace megalith::data
