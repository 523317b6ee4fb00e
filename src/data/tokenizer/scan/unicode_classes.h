#pragma once

#include <cstdint>
#include <string_view>

#include "unicode_tables.h"

namespace megalith::data {

// What the grammars of all tokenizers distinguish. Letters are lower (Ll), upper (Lu, Lt) or caseless (Lm, Lo).
enum class CharClass : uint8_t { other, lower, upper, caseless, mark, number, space, newline };

// Sets of classes, one bit each.
using ClassSet = uint32_t;
constexpr ClassSet set_of(CharClass c) {
  return ClassSet{1} << static_cast<uint32_t>(c);
}
inline constexpr ClassSet kLetters = set_of(CharClass::lower) | set_of(CharClass::upper) | set_of(CharClass::caseless);
inline constexpr ClassSet kNumbers = set_of(CharClass::number);
inline constexpr ClassSet kNewlines = set_of(CharClass::newline);
inline constexpr ClassSet kSpaces = set_of(CharClass::space) | kNewlines;
inline constexpr ClassSet kMarks = set_of(CharClass::mark);
inline constexpr ClassSet kSymbols = set_of(CharClass::other) | kMarks;

namespace unicode {
// Class and the bit that NFC looks at.
inline uint8_t packed_class(uint32_t code) {
  return kClasses[kBlockOf[code / kBlock] * kBlock + code % kBlock];
}
}  // namespace unicode

// `code` <= U+10FFFF. A code point that the tables do not know is `other`.
inline CharClass class_of(uint32_t code) {
  return static_cast<CharClass>(unicode::packed_class(code) & 7);
}

// Version of the Unicode Character Database that this program was built with.
constexpr std::string_view unicode_version() {
  return unicode::kVersion;
}

}  // namespace megalith::data
