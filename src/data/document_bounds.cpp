#include "data/document_bounds.h"

#include <limits>

#include "core/error.h"

namespace megalith::data {

std::vector<int32_t> document_starts(std::span<const int32_t> tokens, int64_t length, int32_t eod) {
  MEGALITH_CHECK(length > 0 && std::ssize(tokens) % length == 0 && length <= std::numeric_limits<int32_t>::max(),
                 "{} tokens in samples of {}", tokens.size(), length);
  std::vector<int32_t> starts(tokens.size());
  for (size_t begin = 0; begin < tokens.size(); begin += static_cast<size_t>(length)) {
    int32_t start = 0;
    for (int32_t i = 0; i < length; ++i) {
      const size_t at = begin + static_cast<size_t>(i);
      starts[at] = start;
      if (tokens[at] == eod) start = i + 1;
    }
  }
  return starts;
}

std::vector<int32_t> document_positions(std::span<const int32_t> starts, int64_t length) {
  std::vector<int32_t> positions(starts.size());
  for (size_t i = 0; i < starts.size(); ++i) {
    positions[i] = static_cast<int32_t>(static_cast<int64_t>(i) % length) - starts[i];
  }
  return positions;
}

std::vector<int32_t> cu_seqlens(std::span<const int32_t> starts, int64_t length) {
  MEGALITH_CHECK(std::ssize(starts) <= std::numeric_limits<int32_t>::max(), "a batch of {} tokens", starts.size());
  std::vector<int32_t> bounds;
  for (int64_t i = 0; i < std::ssize(starts); ++i) {
    if (i % length == starts[static_cast<size_t>(i)]) bounds.push_back(static_cast<int32_t>(i));
  }
  bounds.push_back(static_cast<int32_t>(starts.size()));
  return bounds;
}

}  // namespace megalith::data
