#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace megalith::data {

enum class Split { train, valid, test };

std::string_view name_of(Split split);

struct SequenceRange {
  int64_t begin = 0;
  int64_t end = 0;
  int64_t size() const { return end - begin; }
  bool operator==(const SequenceRange&) const = default;
};

// "969, 30, 1": shares of train, valid and test (config::parse_splits).
class Splits {
 public:
  explicit Splits(std::string_view text);

  // Contiguous sequences of a dataset, cut with Python's round (half to even). Empty when the share is.
  SequenceRange range(Split split, int64_t sequences) const;
  const std::string& text() const { return text_; }

 private:
  std::string text_;
  std::array<double, 4> bounds_{};  // of the whole, from 0 to 1
};

}  // namespace megalith::data
