#pragma once

#include "data/tokenizer/scan/grammar.h"
#include "data/tokenizer/scan/unicode_classes.h"
#include "data/utf8.h"

// The grammars as functions that find the end of one piece, for any bytes: the road that is always right. The fast road
// (ascii_block.h) must agree with it. A byte that is not UTF-8 is a character of class `other`.
namespace megalith::data::scanner {

struct Rune {
  ClassSet set;  // one bit
  uint32_t length;
};

inline Rune rune_at(const char* text, const char* end) {
  const CodePoint point = decode_utf8(text, end);
  return {point.valid ? set_of(class_of(point.code)) : set_of(CharClass::other), point.length};
}

// Behind the run of characters of `set` that begins at `text`.
inline const char* skip(const char* text, const char* end, ClassSet set) {
  while (text < end) {
    const Rune rune = rune_at(text, end);
    if (!(rune.set & set)) break;
    text += rune.length;
  }
  return text;
}

// Bytes of the contraction ('s, 're, ...) whose apostrophe stands at `text`; 0 if there is none. Without case, U+017F
// (long s) folds to s; no other character outside of ASCII folds to one of the letters.
template <bool kAnyCase>
inline uint32_t contraction_length(const char* text, const char* end) {
  if (end - text < 2) return 0;
  const auto letter = [&](int i) { return static_cast<char>(kAnyCase ? text[i] | 0x20 : text[i]); };
  const char first = letter(1);
  if (first == 's' || first == 't' || first == 'm' || first == 'd') return 2;
  if (end - text < 3) return 0;
  if (kAnyCase && text[1] == '\xC5' && text[2] == '\xBF') return 3;
  const char second = letter(2);
  if ((first == 'r' && second == 'e') || (first == 'v' && second == 'e') || (first == 'l' && second == 'l')) return 3;
  return 0;
}

struct WhiteRun {
  const char* end;
  const char* last;         // where its last character begins
  const char* newline_end;  // behind its last newline; nullptr without one
};

inline WhiteRun white_run(const char* text, const char* end) {
  WhiteRun run = {text, text, nullptr};
  while (run.end < end) {
    const Rune rune = rune_at(run.end, end);
    if (!(rune.set & kSpaces)) break;
    run.last = run.end;
    run.end += rune.length;
    if (rune.set & kNewlines) run.newline_end = run.end;
  }
  return run;
}

// \s+(?!\S)|\s+ : the last character of a run belongs to what follows, if anything does.
inline const char* white_piece(const char* text, const char* end, const WhiteRun& run) {
  return run.end == end || run.last == text ? run.end : run.last;
}

inline const char* gpt2_piece(const char* text, const char* end) {
  if (*text == '\'') {
    if (const uint32_t length = contraction_length<false>(text, end)) return text + length;
  }
  const char* body = text;
  Rune rune = rune_at(text, end);
  if (*text == ' ' && text + 1 < end) {
    const Rune next = rune_at(text + 1, end);
    if (!(next.set & kSpaces)) {
      body = text + 1;
      rune = next;
    }
  }
  for (const ClassSet set : {kLetters, kNumbers, kSymbols}) {
    if (rune.set & set) return skip(body + rune.length, end, set);
  }
  return white_piece(text, end, white_run(text, end));
}

// What the younger grammars share: ` ?[^\s\p{L}\p{N}]+` with a tail, newlines, white space.
template <Grammar kGrammar>
inline const char* symbol_or_white_piece(const char* text, const char* end, Rune rune) {
  const char* body = text;
  if (*text == ' ' && text + 1 < end) {
    body = text + 1;
    rune = rune_at(body, end);
  }
  if (rune.set & kSymbols) {
    const char* tail = skip(body + rune.length, end, kSymbols);
    const auto in_tail = [](char c) { return c == '\r' || c == '\n' || (kGrammar == Grammar::o200k && c == '/'); };
    while (tail < end && in_tail(*tail)) ++tail;
    return tail;
  }
  const WhiteRun run = white_run(text, end);
  if (kGrammar == Grammar::cl100k && run.end == end) return end;
  if (run.newline_end != nullptr) return run.newline_end;
  return white_piece(text, end, run);
}

inline const char* number_piece(const char* text, const char* end, uint32_t length, int most) {
  text += length;
  for (int i = 1; i < most && text < end; ++i) {
    const Rune rune = rune_at(text, end);
    if (!(rune.set & kNumbers)) break;
    text += rune.length;
  }
  return text;
}

// cl100k, llama3, qwen2.
template <Grammar kGrammar>
inline const char* cl100k_piece(const char* text, const char* end) {
  if (*text == '\'') {
    if (const uint32_t length = contraction_length<true>(text, end)) return text + length;
  }
  const Rune rune = rune_at(text, end);
  const char* next = text + rune.length;
  if (rune.set & kLetters) return skip(next, end, kLetters);
  if (rune.set & kNumbers) return number_piece(text, end, rune.length, kGrammar == Grammar::qwen2 ? 1 : 3);
  if (!(rune.set & kNewlines) && next < end) {
    const Rune second = rune_at(next, end);
    if (second.set & kLetters) return skip(next + second.length, end, kLetters);
  }
  return symbol_or_white_piece<kGrammar>(text, end, rune);
}

// o200k's words: [upper]*[lower]+ or else [upper]+[lower]*, where caseless letters and marks are in both sets, then
// perhaps a contraction. nullptr if there is no word at `text`.
inline const char* with_contraction(const char* text, const char* end) {
  return text < end && *text == '\'' ? text + contraction_length<true>(text, end) : text;
}

struct O200kWord {
  const char* lower_end = nullptr;  // end of the first form
  const char* upper_end = nullptr;  // end of the second form, where the first does not match
};

inline O200kWord o200k_word(const char* text, const char* end) {
  constexpr ClassSet kBoth = set_of(CharClass::caseless) | kMarks;
  constexpr ClassSet kUpper = set_of(CharClass::upper) | kBoth;
  constexpr ClassSet kLower = set_of(CharClass::lower) | kBoth;
  const char* both_end = nullptr;  // behind the last character that [lower]+ can take back from [upper]*
  const char* at = text;
  while (at < end) {
    const Rune rune = rune_at(at, end);
    if (!(rune.set & kUpper)) {
      if (rune.set & kLower) return {skip(at + rune.length, end, kLower), nullptr};
      break;
    }
    at += rune.length;
    if (rune.set & kBoth) both_end = at;
  }
  if (both_end != nullptr) return {both_end, nullptr};
  return {nullptr, at > text ? at : nullptr};
}

inline const char* o200k_piece(const char* text, const char* end) {
  const Rune rune = rune_at(text, end);
  if (rune.set & kNumbers) return number_piece(text, end, rune.length, 3);
  O200kWord prefixed;
  if (!(rune.set & (kLetters | kNewlines))) prefixed = o200k_word(text + rune.length, end);
  if (prefixed.lower_end != nullptr) return with_contraction(prefixed.lower_end, end);
  const O200kWord word = rune.set & (kLetters | kMarks) ? o200k_word(text, end) : O200kWord{};
  for (const char* word_end : {word.lower_end, prefixed.upper_end, word.upper_end}) {
    if (word_end != nullptr) return with_contraction(word_end, end);
  }
  return symbol_or_white_piece<Grammar::o200k>(text, end, rune);
}

// Behind the piece that begins at `text` < `end`.
template <Grammar kGrammar>
inline const char* piece_end(const char* text, const char* end) {
  if constexpr (kGrammar == Grammar::gpt2) {
    return gpt2_piece(text, end);
  } else if constexpr (kGrammar == Grammar::o200k) {
    return o200k_piece(text, end);
  } else {
    return cl100k_piece<kGrammar>(text, end);
  }
}

}  // namespace megalith::data::scanner
