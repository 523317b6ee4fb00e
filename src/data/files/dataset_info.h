#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "data/files/indexed_dataset.h"
#include "data/tokenizer/tokenizer.h"

namespace megalith::data {

// How many sequences have 0, 1, 2-3, 4-7, ... tokens.
struct LengthHistogram {
  std::array<int64_t, 33> counts{};
  int64_t shortest = 0;
  int64_t longest = 0;
};

LengthHistogram histogram_of(const IndexedDataset& dataset);

// One row per power of two from the shortest to the longest, with a bar that shows its share of the largest.
std::string draw(const LengthHistogram& histogram);

// Counts, dtype and sizes, as text.
std::string describe_counts(const IndexedDataset& dataset);

// What the sidecar says of the dataset: its tokenizer, its sources, what was left out. A line that says so without one.
std::string describe_origin(const std::string& prefix);

// The beginning of `count` sequences that lie evenly in the dataset: ids, and text where there is a tokenizer. Text is
// cut to `width` bytes and control characters are shown by escapes, so that it stays within its line.
std::string show_samples(const IndexedDataset& dataset, const Tokenizer* tokenizer, int64_t count, int64_t width);

}  // namespace megalith::data
