#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "data/tokenizer/scan/grammar.h"
#include "data/tokenizer/scan/unicode_classes.h"
#include "data/utf8.h"

// The grammars once more, slow and plain: their regular expressions, item by item, matched by backtracking over decoded
// characters. Shares with the scanners only the classes of characters.
namespace megalith::data::oracle {

struct Char {
  uint32_t code;  // beyond Unicode for a byte that is not UTF-8
  CharClass kind;
  size_t begin;  // in bytes
};

using Text = std::vector<Char>;

inline Text decode(std::string_view bytes) {
  Text text;
  for (size_t i = 0; i < bytes.size();) {
    const CodePoint point = decode_utf8(bytes.data() + i, bytes.data() + bytes.size());
    text.push_back(point.valid ? Char{point.code, class_of(point.code), i} : Char{0x110000, CharClass::other, i});
    i += point.length;
  }
  return text;
}

using Test = std::function<bool(const Char&)>;

// One item of a sequence: `least` to `most` characters, as many as possible first; a possessive item takes the most
// only.
struct Item {
  Test test;
  size_t least = 1;
  size_t most = 1;
  bool possessive = false;
};
using Condition = std::function<bool(const Text&, size_t)>;
inline Condition always() {
  return [](const Text&, size_t) { return true; };
}
// Items, then a condition on where they end, then perhaps one of several suffixes.
struct Sequence {
  std::vector<Item> items;
  Condition condition = always();
  std::vector<std::vector<Item>> suffixes = {};
};
using Pattern = std::vector<Sequence>;

constexpr size_t kMany = ~size_t{0};
constexpr size_t kNone = ~size_t{0};

inline size_t match_items(const Text& text, size_t at, const Sequence& sequence, size_t item_index) {
  if (item_index == sequence.items.size()) return sequence.condition(text, at) ? at : kNone;
  const Item& item = sequence.items[item_index];
  size_t count = 0;
  while (count < item.most && at + count < text.size() && item.test(text[at + count])) ++count;
  for (size_t take = count + 1; take-- > item.least;) {
    const size_t end = match_items(text, at + take, sequence, item_index + 1);
    if (end != kNone) return end;
    if (item.possessive || take == 0) break;
  }
  return kNone;
}

inline size_t match(const Text& text, size_t at, const Pattern& pattern) {
  for (const Sequence& sequence : pattern) {
    const size_t end = match_items(text, at, sequence, 0);
    if (end == kNone) continue;
    for (const std::vector<Item>& suffix : sequence.suffixes) {
      const size_t longer = match_items(text, end, {suffix}, 0);
      if (longer != kNone) return longer;
    }
    return end;
  }
  return kNone;
}

inline Test any_of(ClassSet set) {
  return [set](const Char& c) { return (set_of(c.kind) & set) != 0; };
}
inline Test none_of(ClassSet set) {
  return [set](const Char& c) { return (set_of(c.kind) & set) == 0; };
}
inline Test one(uint32_t code, bool any_case = false) {
  return [=](const Char& c) {
    if (c.code == code) return true;
    if (!any_case) return false;
    return c.code + 0x20 == code || (code == 's' && c.code == 0x17F);
  };
}
inline Test newline_or_slash() {
  return [](const Char& c) { return c.code == '\r' || c.code == '\n' || c.code == '/'; };
}

inline std::vector<std::vector<Item>> contractions(bool any_case) {
  std::vector<std::vector<Item>> all;
  for (const std::string_view letters : {"s", "t", "re", "ve", "m", "ll", "d"}) {
    std::vector<Item> items = {{one('\'')}};
    for (const char c : letters) items.push_back({one(static_cast<uint32_t>(c), any_case)});
    all.push_back(items);
  }
  return all;
}

inline Condition end_of_text() {
  return [](const Text& text, size_t at) { return at == text.size(); };
}
inline Condition no_text_follows() {
  return [](const Text& text, size_t at) { return at == text.size() || (set_of(text[at].kind) & kSpaces); };
}

inline Pattern pattern_of(Grammar grammar) {
  const Test letter = any_of(kLetters), number = any_of(kNumbers), space = any_of(kSpaces), newline = any_of(kNewlines);
  const Test symbol = none_of(kSpaces | kLetters | kNumbers), prefix = none_of(kNewlines | kLetters | kNumbers);
  const Item blank = {one(' '), 0, 1};
  const Sequence spaces_before = {{{space, 1, kMany}}, no_text_follows()}, spaces = {{{space, 1, kMany}}};
  Pattern pattern;
  if (grammar != Grammar::o200k) {
    for (const auto& items : contractions(grammar != Grammar::gpt2)) pattern.push_back({items});
  }
  if (grammar == Grammar::gpt2) {
    for (const Test& test : {letter, number, symbol}) pattern.push_back({{blank, {test, 1, kMany}}});
    pattern.push_back(spaces_before);
    pattern.push_back(spaces);
    return pattern;
  }
  if (grammar == Grammar::o200k) {
    const ClassSet both = set_of(CharClass::caseless) | set_of(CharClass::mark);
    const Test upper = any_of(set_of(CharClass::upper) | both), lower = any_of(set_of(CharClass::lower) | both);
    for (const size_t upper_least : {size_t{0}, size_t{1}}) {
      // Where the word itself ends does not depend on the optional contraction, which is tried last and greedily.
      pattern.push_back({{{prefix, 0, 1}, {upper, upper_least, kMany}, {lower, 1 - upper_least, kMany}},
                         always(),
                         contractions(true)});
    }
  } else {
    pattern.push_back({{{prefix, 0, 1, grammar == Grammar::cl100k}, {letter, 1, kMany, grammar == Grammar::cl100k}}});
  }
  pattern.push_back({{{number, 1, grammar == Grammar::qwen2 ? 1u : 3u}}});
  pattern.push_back(
      {{blank, {symbol, 1, kMany}, {grammar == Grammar::o200k ? newline_or_slash() : newline, 0, kMany}}});
  if (grammar == Grammar::cl100k) {
    pattern.push_back({{{space, 1, kMany, true}}, end_of_text()});
    pattern.push_back({{{space, 0, kMany}, {newline}}});
    pattern.push_back(spaces_before);
    pattern.push_back({{{space}}});
  } else {
    pattern.push_back({{{space, 0, kMany}, {newline, 1, kMany}}});
    pattern.push_back(spaces_before);
    pattern.push_back(spaces);
  }
  return pattern;
}

inline std::vector<std::string> pieces(Grammar grammar, std::string_view bytes) {
  const Pattern pattern = pattern_of(grammar);
  const Text text = decode(bytes);
  std::vector<std::string> pieces;
  for (size_t at = 0; at < text.size();) {
    size_t end = match(text, at, pattern);
    if (end == kNone) end = at + 1;
    const size_t begin_byte = text[at].begin;
    const size_t end_byte = end < text.size() ? text[end].begin : bytes.size();
    pieces.emplace_back(bytes.substr(begin_byte, end_byte - begin_byte));
    at = end;
  }
  return pieces;
}

}  // namespace megalith::data::oracle
