#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>

#include "data/tokenizer/scan/ascii_masks.h"
#include "data/tokenizer/scan/scanner_rules.h"

// The grammars as arithmetic on bit masks: all pieces that begin in 64 bytes of ASCII at once. The block begins where a
// piece begins, so nothing before it matters. Whatever the masks cannot decide (a character that is not ASCII, what
// the end of the block hides, rare combinations) bounds the answer, and the caller goes on with scanner_rules.h.
namespace megalith::data::scanner {

inline constexpr int kBlockBytes = 64;

// Places where pieces begin, bit 0 among them; only bits up to `last` are decided.
struct BlockStarts {
  uint64_t starts = 1;
  int last = 0;
};

constexpr uint64_t bit(int i) {
  return uint64_t{1} << i;
}

// No piece begins at `first` < kBlockBytes and up to `end`, where one does.
inline void join(uint64_t& starts, int first, int end) {
  starts &= ~((bit(end - first) - 1) << first);
  if (end < kBlockBytes) starts |= bit(end);
}

inline BlockStarts gpt2_starts(const char* text, const char* end, int valid, const AsciiMasks& m) {
  const uint64_t white = m.white;
  const uint64_t symbol = ~(white | m.letter | m.digit);
  const uint64_t white_starts = white & ~(white << 1);
  const uint64_t white_lasts = white & ~(white >> 1);
  const uint64_t after_other_white = ~white & ((white & ~m.blank) << 1);
  const uint64_t changes =
      ((m.letter & ~(m.letter << 1)) | (m.digit & ~(m.digit << 1)) | (symbol & ~(symbol << 1))) & ~(white << 1);
  uint64_t starts = white_starts | white_lasts | after_other_white | changes | 1;
  const int last = valid - 2;
  for (uint64_t left = m.apostrophe & starts; left != 0; left &= left - 1) {
    const int i = std::countr_zero(left);
    if (i > last) break;
    const int length = static_cast<int>(contraction_length<false>(text + i, end));
    if (length > 0) join(starts, i + 1, i + length);
  }
  return {starts, last};
}

// The newlines that directly follow a run of symbols belong to its piece.
inline uint64_t newlines_after(uint64_t symbol, uint64_t newline) {
  return newline & ~(newline + (newline & (symbol << 1)));
}

inline uint64_t digit_starts(uint64_t digit) {
  const uint64_t three = digit & (digit << 1) & (digit << 2);
  uint64_t starts = digit & ~(digit << 1);
  for (uint64_t more = starts; (more = (more << 3) & three) != 0;) starts |= more;
  return starts;
}

template <Grammar kGrammar>
inline BlockStarts cl100k_starts(const char* text, const char* end, int valid, const AsciiMasks& m) {
  constexpr bool kCased = kGrammar == Grammar::o200k;
  const uint64_t white = m.white;
  const uint64_t symbol = ~(white | m.letter | m.digit);
  const uint64_t inside = valid == kBlockBytes ? ~uint64_t{0} : bit(valid) - 1;
  if ((~white & inside) == 0) return {};
  // What white space that reaches the end of the block becomes is not known.
  int last = std::min(valid - 2, kBlockBytes - 1 - std::countl_zero(~white & inside));

  const uint64_t tails = newlines_after(symbol, m.newline);
  if (kCased && ((tails << 1) & m.slash)) last = std::min(last, std::countr_zero((tails << 1) & m.slash) - 1);
  const uint64_t free_white = white & ~tails;
  const uint64_t spaces = white & ~m.newline;
  const uint64_t white_starts = free_white & ~(free_white << 1);
  const uint64_t white_lasts = spaces & ~(white >> 1);
  // Spaces behind a newline begin a piece unless another newline follows in the same run.
  const uint64_t indents = spaces & (m.newline << 1);
  if ((spaces + indents) & m.newline) last = std::min(last, std::countr_zero(indents) - 1);

  const uint64_t symbol_starts = symbol & ~(symbol << 1) & ~(m.blank << 1);
  const uint64_t prefixes = spaces | (symbol_starts & ~(symbol >> 1));
  const uint64_t letter_starts = m.letter & ~(m.letter << 1) & ~(prefixes << 1);
  const uint64_t numbers = kGrammar == Grammar::qwen2 ? m.digit : digit_starts(m.digit);
  uint64_t starts = white_starts | white_lasts | indents | symbol_starts | letter_starts | numbers | 1;
  if (kCased) starts |= m.upper & ((m.letter & ~m.upper) << 1);

  // A contraction begins a piece, or in o200k ends a word.
  const uint64_t candidates = m.apostrophe & (kCased ? m.letter << 1 : starts);
  for (uint64_t left = candidates; left != 0; left &= left - 1) {
    const int i = std::countr_zero(left);
    if (i > last) break;
    const int length = static_cast<int>(contraction_length<true>(text + i, end));
    if (length == 0) continue;
    join(starts, kCased ? i : i + 1, i + length);
    // The next apostrophe would have to know that the letter before it belongs to this one.
    if (kCased && text + i + length < end && text[i + length] == '\'') {
      last = std::min(last, i + length);
      break;
    }
  }
  return {starts, last};
}

// `masks` of the block at `text`, of which the first `valid` bytes are ASCII and lie before `end`.
template <Grammar kGrammar>
inline BlockStarts block_starts(const char* text, const char* end, int valid, const AsciiMasks& masks) {
  if constexpr (kGrammar == Grammar::gpt2) {
    return gpt2_starts(text, end, valid, masks);
  } else {
    return cl100k_starts<kGrammar>(text, end, valid, masks);
  }
}

}  // namespace megalith::data::scanner
