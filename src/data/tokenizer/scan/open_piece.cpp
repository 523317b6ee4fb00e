#include "data/tokenizer/scan/open_piece.h"

namespace megalith::data {

using scanner::rune_at;

namespace {
constexpr ClassSet kBoth = set_of(CharClass::caseless) | kMarks;
constexpr ClassSet kLower = set_of(CharClass::lower) | kBoth;
constexpr size_t kLookahead = 16;  // more than a contraction and a character that is cut off
constexpr size_t kSettleAt = size_t{1} << 14;
}  // namespace

OpenPiece::OpenPiece(Grammar grammar, std::string_view text, size_t kept) : grammar_(grammar), merger_(kept) {
  const char* const end = text.data() + text.size();
  if (grammar == Grammar::gpt2) {
    begin_gpt2(text.data(), end);
  } else if (grammar == Grammar::o200k) {
    begin_o200k(text.data(), end);
  } else {
    begin_cl100k(text.data(), end);
  }
}

void OpenPiece::begin_gpt2(const char* text, const char* end) {
  scanner::Rune rune = rune_at(text, end);
  if (*text == ' ') {
    const scanner::Rune next = rune_at(text + 1, end);
    if (!(next.set & kSpaces)) {
      prefix_ = 1;
      rune = next;
    }
  }
  for (const ClassSet set : {kLetters, kNumbers, kSymbols}) {
    if (rune.set & set) {
      kind_ = Kind::run;
      set_ = set;
    }
  }
}

void OpenPiece::begin_cl100k(const char* text, const char* end) {
  const scanner::Rune rune = rune_at(text, end);
  const bool prefixed = !(rune.set & (kLetters | kNewlines)) && rune_at(text + rune.length, end).set & kLetters;
  if (rune.set & kLetters || prefixed) {
    kind_ = Kind::run;
    set_ = kLetters;
    prefix_ = prefixed ? rune.length : 0;
  } else {
    begin_symbols_or_white(text, end);
  }
}

void OpenPiece::begin_o200k(const char* text, const char* end) {
  const scanner::Rune rune = rune_at(text, end);
  // A mark may be a prefix or begin the word: its piece is the same.
  const bool word = rune.set & (kLetters | kMarks);
  const bool prefixed = !word && !(rune.set & kNewlines) && rune_at(text + rune.length, end).set & (kLetters | kMarks);
  if (word || prefixed) {
    kind_ = Kind::upper;
    prefix_ = prefixed ? rune.length : 0;
  } else {
    begin_symbols_or_white(text, end);
  }
}

void OpenPiece::begin_symbols_or_white(const char* text, const char* end) {
  prefix_ = *text == ' ' ? 1 : 0;
  if (rune_at(text + prefix_, end).set & kSymbols) {
    kind_ = Kind::run;
    set_ = kSymbols;
  } else {
    prefix_ = 0;
  }
}

void OpenPiece::commit_waiting() {
  merger_.add(last_white_);
  last_white_.clear();
  waiting_.take([this](std::string_view text) { merger_.add(text); });
}

bool OpenPiece::take_white(std::string_view character, ClassSet set) {
  if (!(set & kSpaces)) return false;
  if (set & kNewlines && grammar_ != Grammar::gpt2) {
    commit_waiting();
    merger_.add(character);
    marked_ = true;
    return true;
  }
  // Without a newline only the last character may belong to what follows.
  if (marked_) {
    waiting_.add(character);
  } else {
    merger_.add(last_white_);
    last_white_ = character;
  }
  return true;
}

bool OpenPiece::take_upper(std::string_view character, ClassSet set) {
  if (set & set_of(CharClass::upper)) {
    if (marked_) {
      waiting_.add(character);
    } else {
      merger_.add(character);
    }
    return true;
  }
  if (!(set & kLower)) return false;
  commit_waiting();
  merger_.add(character);
  marked_ = true;
  if (!(set & kBoth)) kind_ = Kind::lower;
  return true;
}

bool OpenPiece::take(std::string_view character, ClassSet set) {
  switch (kind_) {
    case Kind::run:
      if (set & set_) break;
      if (set_ != kSymbols || grammar_ == Grammar::gpt2) return false;
      kind_ = Kind::tail;
      [[fallthrough]];
    case Kind::tail:
      if (set & kNewlines || (grammar_ == Grammar::o200k && character == "/")) break;
      return false;
    case Kind::white:
      return take_white(character, set);
    case Kind::upper:
      return take_upper(character, set);
    case Kind::lower:
      if (set & kLower) break;
      return false;
  }
  merger_.add(character);
  return true;
}

void OpenPiece::end_at_text_end() {
  // White space that ends the text is one piece; in the grammars of llama3's kind its newlines are one before it.
  if (kind_ == Kind::white && (!marked_ || grammar_ == Grammar::cl100k)) commit_waiting();
  ended_ = true;
}

size_t OpenPiece::add(std::string_view text, bool last, BpeEncoder& encoder, std::vector<int32_t>& ids) {
  const char* at = text.data();
  const char* const end = at + text.size();
  merger_.add(text.substr(0, prefix_));
  at += prefix_;
  prefix_ = 0;
  while (!ended_ && (last ? at < end : end - at >= static_cast<std::ptrdiff_t>(kLookahead))) {
    const scanner::Rune rune = rune_at(at, end);
    if (take({at, rune.length}, rune.set)) {
      at += rune.length;
    } else {
      ended_ = true;
      if (merger_.empty()) commit_waiting();  // a single character is the piece
      if (!last_white_.empty()) waiting_.add(last_white_);
      const bool word = kind_ == Kind::lower || (kind_ == Kind::upper && waiting_.empty());
      if (word) {
        const char* const contraction = at;
        at = scanner::with_contraction(at, end);
        merger_.add({contraction, static_cast<size_t>(at - contraction)});
      }
    }
    if (merger_.unsettled() > kSettleAt) merger_.settle(*encoder.model(), ids);
  }
  if (last && !ended_) end_at_text_end();
  if (ended_) merger_.finish(encoder, ids);
  return static_cast<size_t>(at - text.data());
}

}  // namespace megalith::data
