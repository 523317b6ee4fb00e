#include "data/utf8_stream.h"

#include <utility>

namespace megalith::data {

namespace {
constexpr std::string_view kReplacement = "\xEF\xBF\xBD";

struct Character {
  size_t bytes;  // how many belong to it so far; at least 1
  enum { valid, invalid, incomplete } state;
};

// What the text, which is not empty, begins with. The second byte's range rules out overlong forms, surrogates and what
// lies beyond U+10FFFF (table 3-7 of the Unicode standard).
Character first_character(std::string_view text) {
  const auto lead = static_cast<unsigned char>(text[0]);
  if (lead < 0x80) return {1, Character::valid};
  const size_t size = lead >= 0xC2 && lead <= 0xDF   ? 2
                      : (lead & 0xF0) == 0xE0        ? 3
                      : lead >= 0xF0 && lead <= 0xF4 ? 4
                                                     : 0;
  if (size == 0) return {1, Character::invalid};
  unsigned char low = lead == 0xE0 ? 0xA0 : lead == 0xF0 ? 0x90 : 0x80;
  unsigned char high = lead == 0xED ? 0x9F : lead == 0xF4 ? 0x8F : 0xBF;
  for (size_t i = 1; i < size; ++i) {
    if (i == text.size()) return {i, Character::incomplete};
    const auto byte = static_cast<unsigned char>(text[i]);
    if (byte < low || byte > high) return {i, Character::invalid};
    low = 0x80;
    high = 0xBF;
  }
  return {size, Character::valid};
}
}  // namespace

std::string Utf8Stream::add(std::string_view bytes) {
  held_ += bytes;
  std::string text;
  std::string_view rest = held_;
  while (!rest.empty()) {
    const Character next = first_character(rest);
    if (next.state == Character::incomplete) break;
    text += next.state == Character::valid ? rest.substr(0, next.bytes) : kReplacement;
    rest.remove_prefix(next.bytes);
  }
  held_ = std::string(rest);
  return text;
}

std::string Utf8Stream::finish() {
  // An incomplete character is one ill-formed piece, however many of its bytes came.
  return std::exchange(held_, {}).empty() ? std::string() : std::string(kReplacement);
}

}  // namespace megalith::data
