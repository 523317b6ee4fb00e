#include "data/order/mock_sequences.h"

#include "core/error.h"
#include "data/order/numpy_random.h"

namespace megalith::data {

MockSequences::MockSequences(Vocabulary vocabulary) : vocabulary_(vocabulary), lengths_(kSequences) {
  MEGALITH_CHECK(vocabulary.size > 0, "mock data of no vocabulary");
  NumpyGenerator random(0);
  for (int32_t& length : lengths_) length = random.integer(1, 4096);
}

void MockSequences::read(int64_t sequence, int64_t offset, std::span<int32_t> out) const {
  const int64_t last = length(sequence) - 1;
  MEGALITH_CHECK(offset >= 0 && offset + std::ssize(out) <= last + 1, "tokens {} to {} of {}", offset,
                 offset + std::ssize(out), last + 1);
  for (size_t i = 0; i < out.size(); ++i) {
    const int64_t position = offset + static_cast<int64_t>(i);
    const bool ends = position == last && vocabulary_.eod >= 0;
    out[i] = ends ? vocabulary_.eod : static_cast<int32_t>((position + 1) % vocabulary_.size);
  }
}

}  // namespace megalith::data
