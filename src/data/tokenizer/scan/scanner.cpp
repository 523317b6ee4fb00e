#include "data/tokenizer/scan/scanner.h"

#include <cstring>

#include "data/tokenizer/scan/ascii_block.h"
#include "data/tokenizer/scan/scanner_rules.h"

namespace megalith::data {

namespace {
using scanner::kBlockBytes;

// After a block that decided little (text that is not ASCII, long pieces) this many pieces go by the rules alone.
constexpr int kRulePieces = 6;
constexpr size_t kFewPieces = 4;

// Writes text + i for every bit i; may write up to 7 more behind them.
size_t harvest(uint64_t bits, const char* text, const char** ends) {
  const auto count = static_cast<size_t>(std::popcount(bits));
  for (size_t i = 0; i < count; i += 8) {
    for (size_t k = 0; k < 8; ++k) {
      ends[i + k] = text + (std::countr_zero(bits) & 63);
      bits &= bits - 1;
    }
  }
  return count;
}

template <Grammar kGrammar>
size_t scan_block(const char* text, const char* end, const char** ends) {
  scanner::AsciiMasks masks;
  int valid = kBlockBytes;
  if (end - text >= kBlockBytes) {
    masks = scanner::ascii_masks(text);
  } else {
    char padded[kBlockBytes] = {};
    valid = static_cast<int>(end - text);
    std::memcpy(padded, text, static_cast<size_t>(valid));
    masks = scanner::ascii_masks(padded);
  }
  if (masks.high != 0) valid = std::min(valid, std::countr_zero(masks.high));
  if (valid < 3) return 0;
  const scanner::BlockStarts block = scanner::block_starts<kGrammar>(text, end, valid, masks);
  if (block.last <= 0) return 0;
  const uint64_t decided = (uint64_t{2} << block.last) - 1;
  return harvest(block.starts & decided & ~uint64_t{1}, text, ends);
}

template <Grammar kGrammar>
size_t scan_text(const char* text, const char* end, const char** ends) {
  size_t count = 0;
  while (count < Scanner::kBatch && text < end) {
    const size_t found = scan_block<kGrammar>(text, end, ends + count);
    if (found > 0) text = ends[count + found - 1];
    count += found;
    // The rules finish the piece that the block could not.
    for (int i = found < kFewPieces       ? kRulePieces
                 : found < 2 * kFewPieces ? 1
                                          : 0;
         i > 0 && count < Scanner::kBatch && text < end; --i) {
      text = scanner::piece_end<kGrammar>(text, end);
      ends[count++] = text;
    }
  }
  return count;
}
}  // namespace

Scanner::Scanner(Grammar grammar) {
  switch (grammar) {
    case Grammar::gpt2:
      scan_ = scan_text<Grammar::gpt2>;
      break;
    case Grammar::cl100k:
      scan_ = scan_text<Grammar::cl100k>;
      break;
    case Grammar::llama3:
      scan_ = scan_text<Grammar::llama3>;
      break;
    case Grammar::o200k:
      scan_ = scan_text<Grammar::o200k>;
      break;
    case Grammar::qwen2:
      scan_ = scan_text<Grammar::qwen2>;
      break;
  }
}

std::vector<std::string_view> Scanner::pieces(std::string_view text) const {
  std::vector<std::string_view> pieces;
  const char* ends[kBatch + kSlack];
  const char* at = text.data();
  const char* const end = at + text.size();
  while (const size_t count = scan(at, end, ends)) {
    for (size_t i = 0; i < count; ++i) {
      pieces.emplace_back(at, static_cast<size_t>(ends[i] - at));
      at = ends[i];
    }
  }
  return pieces;
}

namespace {
// The class of the character that ends at `end` > `text`, and where it begins; a byte that is not UTF-8 has none.
ClassSet set_before(const char* text, const char* end, const char*& begin) {
  begin = end - 1;
  while (begin > text && end - begin < 4 && (static_cast<unsigned char>(*begin) & 0xC0) == 0x80) --begin;
  const CodePoint point = decode_utf8(begin, end);
  return point.valid && begin + point.length == end ? set_of(class_of(point.code)) : 0;
}

// Where the run of characters of `set` begins that ends at `end`.
const char* run_before(const char* text, const char* end, ClassSet set) {
  for (const char* begin = end; end > text && set_before(text, end, begin) & set;) end = begin;
  return end;
}
}  // namespace

size_t settled_bytes(Grammar grammar, std::string_view text) {
  constexpr size_t kLookahead = 16;  // more than a contraction and a character that is cut off
  if (text.size() <= kLookahead) return 0;
  const char* const begin = text.data();
  const char* end = begin + text.size() - kLookahead;
  while (end > begin && (static_cast<unsigned char>(*end) & 0xC0) == 0x80) --end;
  const char* settled = run_before(begin, end, kSpaces);
  if (grammar == Grammar::o200k) {
    const char* const upper = run_before(begin, end, set_of(CharClass::upper));
    const char* before = upper;
    const bool word =
        upper < end && upper > begin && set_before(begin, upper, before) & (set_of(CharClass::caseless) | kMarks);
    settled = std::min(settled, word ? before : upper);
  }
  return static_cast<size_t>(settled - begin);
}

}  // namespace megalith::data
