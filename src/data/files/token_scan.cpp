#include "data/files/token_scan.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <type_traits>

#include "core/error.h"

namespace megalith::data {

namespace {
template <class T>
T load_token(std::span<const std::byte> block, size_t index) {
  T value;
  std::memcpy(&value, block.data() + index * sizeof(T), sizeof(T));
  return value;
}

// Negative ids are large as unsigned numbers: one comparison finds both kinds of bad id.
template <class T>
struct Summary {
  std::make_unsigned_t<T> largest = 0;
  int64_t eods = 0;
};

template <class T>
Summary<T> summarise(std::span<const std::byte> block, int64_t eod) {
  using Unsigned = std::make_unsigned_t<T>;
  Summary<T> summary;
  const bool can_be = eod >= 0 && static_cast<uint64_t>(eod) <= std::numeric_limits<Unsigned>::max();
  const auto wanted = static_cast<Unsigned>(can_be ? eod : 0);
  const size_t count = block.size() / sizeof(T);
  // In pieces whose counts fit the width of a token: the counters then fill vector registers as the tokens do.
  constexpr size_t kPiece = sizeof(T) == 1 ? 255 : 32768;
  for (size_t begin = 0; begin < count; begin += kPiece) {
    const size_t end = std::min(count, begin + kPiece);
    Unsigned largest = 0;
    Unsigned eods = 0;
    for (size_t i = begin; i < end; ++i) {
      const auto token = static_cast<Unsigned>(load_token<T>(block, i));
      largest = std::max(largest, token);
      eods = static_cast<Unsigned>(eods + (token == wanted ? 1 : 0));
    }
    summary.largest = std::max(summary.largest, largest);
    summary.eods += static_cast<int64_t>(eods);
  }
  if (!can_be) summary.eods = 0;
  return summary;
}
}  // namespace

int64_t last_sequence_with_tokens(const IndexedDataset& dataset, int64_t document) {
  for (int64_t i = dataset.document_begin(document + 1); i-- > dataset.document_begin(document);) {
    if (dataset.length(i) > 0) return i;
  }
  return -1;
}

TokenScan::TokenScan(const IndexedDataset& dataset, const Options& options) : dataset_(dataset), options_(options) {
  next_document();
}

void TokenScan::next_document() {
  while (++document_ < dataset_.documents()) {
    int64_t tokens = 0;
    for (const int64_t end = dataset_.document_begin(document_ + 1); sequence_ < end; ++sequence_) {
      tokens += dataset_.length(sequence_);
    }
    sequence_begin_ += tokens;
    document_end_ = sequence_begin_ - 1;
    if (tokens > 0) return;
  }
  document_end_ = -1;
}

void TokenScan::add(std::span<const std::byte> block) {
  switch (dataset_.token_type()) {
    case TokenType::uint8:
      return scan<uint8_t>(block);
    case TokenType::int8:
      return scan<int8_t>(block);
    case TokenType::int16:
      return scan<int16_t>(block);
    case TokenType::uint16:
      return scan<uint16_t>(block);
    case TokenType::int32:
      return scan<int32_t>(block);
    case TokenType::uint32:
      return scan<uint32_t>(block);
    case TokenType::int64:
      return scan<int64_t>(block);
    case TokenType::uint64:
      return scan<uint64_t>(block);
  }
}

template <class T>
void TokenScan::scan(std::span<const std::byte> block) {
  MEGALITH_CHECK(block.size() % sizeof(T) == 0, "a block of {} bytes cuts a token", block.size());
  const Summary<T> summary = summarise<T>(block, options_.eod);
  eods_ += summary.eods;
  const int64_t limit = options_.vocab_size > 0 ? options_.vocab_size : int64_t{1} << 31;
  if (static_cast<uint64_t>(summary.largest) >= static_cast<uint64_t>(limit) ||
      static_cast<uint64_t>(summary.largest) > static_cast<uint64_t>(std::numeric_limits<T>::max())) {
    find_bad<T>(block);
  } else {
    largest_ = std::max(largest_, static_cast<int64_t>(summary.largest));
  }
  if (options_.eod >= 0) check_ends<T>(block);
  tokens_ += static_cast<int64_t>(block.size() / sizeof(T));
}

template <class T>
void TokenScan::find_bad(std::span<const std::byte> block) {
  const int64_t limit = options_.vocab_size > 0 ? options_.vocab_size : int64_t{1} << 31;
  for (size_t i = 0; i < block.size() / sizeof(T); ++i) {
    // A uint64 beyond int64 is negative here and found as such.
    const auto value = static_cast<int64_t>(load_token<T>(block, i));
    largest_ = std::max(largest_, value);
    if (value >= 0 && value < limit) continue;
    if (bad_.count++ > 0) continue;
    bad_.value = value;
    bad_.position = tokens_ + static_cast<int64_t>(i);
    while (bad_.position >= dataset_.length(bad_.sequence)) bad_.position -= dataset_.length(bad_.sequence++);
  }
}

template <class T>
void TokenScan::check_ends(std::span<const std::byte> block) {
  const int64_t end = tokens_ + static_cast<int64_t>(block.size() / sizeof(T));
  for (; document_end_ >= 0 && document_end_ < end; next_document()) {
    const auto last = static_cast<int64_t>(load_token<T>(block, static_cast<size_t>(document_end_ - tokens_)));
    if (last == options_.eod) {
      ++closed_documents_;
    } else if (open_.count++ == 0) {
      open_.sequence = document_;
      open_.value = last;
    }
  }
}

}  // namespace megalith::data
