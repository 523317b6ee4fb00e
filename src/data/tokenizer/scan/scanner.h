#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

#include "data/tokenizer/scan/grammar.h"

namespace megalith::data {

// Cuts text into the pieces of a grammar, some hundred at a time. Takes any bytes, in linear time; holds no text.
class Scanner {
 public:
  static constexpr size_t kBatch = 256;
  static constexpr size_t kSlack = 72;  // what one block may add to a batch that is almost full

  explicit Scanner(Grammar grammar);

  // Finds the pieces from `text` on, which must be where one begins, and writes their ends. Returns how many; 0 only
  // at `end`. `ends` has room for kBatch + kSlack.
  size_t scan(const char* text, const char* end, const char** ends) const { return scan_(text, end, ends); }

  // All pieces at once, for tests and other small texts.
  std::vector<std::string_view> pieces(std::string_view text) const;

 private:
  size_t (*scan_)(const char* text, const char* end, const char** ends);
};

// Pieces that end at or before this byte of `text` are the same whatever follows the text. Behind its end a piece looks
// for a contraction at most, or it ends within a run that decides where: white space, whose last newline ends a piece,
// and in o200k capitals, before which the last letter without case ends a word unless a small letter follows them.
size_t settled_bytes(Grammar grammar, std::string_view text);

}  // namespace megalith::data
