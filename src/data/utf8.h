#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace megalith::data {

// U+FFFD, which stands for what is no Unicode.
inline constexpr std::string_view kReplacementCharacter = "\xEF\xBF\xBD";

struct CodePoint {
  uint32_t code = 0;
  uint32_t length = 1;  // bytes
  bool valid = true;
};

// The code point at `text` < `end`. A byte that does not begin a well-formed sequence (Unicode 15, table 3-7) is one
// invalid code point of one byte. Never looks at or beyond `end`.
inline CodePoint decode_utf8(const char* text, const char* end) {
  const auto byte = [&](int i) { return static_cast<uint32_t>(static_cast<unsigned char>(text[i])); };
  const auto continues = [&](int i) { return (byte(i) & 0xC0) == 0x80; };
  const uint32_t lead = byte(0);
  if (lead < 0x80) return {lead, 1, true};
  const auto left = end - text;
  if (lead >= 0xC2 && lead <= 0xDF) {
    if (left >= 2 && continues(1)) return {(lead & 0x1F) << 6 | (byte(1) & 0x3F), 2, true};
  } else if (lead >= 0xE0 && lead <= 0xEF) {
    if (left >= 3 && continues(1) && continues(2)) {
      const uint32_t code = (lead & 0x0F) << 12 | (byte(1) & 0x3F) << 6 | (byte(2) & 0x3F);
      if (code >= 0x800 && (code < 0xD800 || code > 0xDFFF)) return {code, 3, true};
    }
  } else if (lead >= 0xF0 && lead <= 0xF4) {
    if (left >= 4 && continues(1) && continues(2) && continues(3)) {
      const uint32_t code = (lead & 0x07) << 18 | (byte(1) & 0x3F) << 12 | (byte(2) & 0x3F) << 6 | (byte(3) & 0x3F);
      if (code >= 0x10000 && code <= 0x10FFFF) return {code, 4, true};
    }
  }
  return {lead, 1, false};
}

inline void append_utf8(std::string& text, uint32_t code) {
  const auto put = [&](uint32_t byte) { text.push_back(static_cast<char>(byte)); };
  if (code < 0x80) {
    put(code);
  } else if (code < 0x800) {
    put(0xC0 | code >> 6);
    put(0x80 | (code & 0x3F));
  } else if (code < 0x10000) {
    put(0xE0 | code >> 12);
    put(0x80 | (code >> 6 & 0x3F));
    put(0x80 | (code & 0x3F));
  } else {
    put(0xF0 | code >> 18);
    put(0x80 | (code >> 12 & 0x3F));
    put(0x80 | (code >> 6 & 0x3F));
    put(0x80 | (code & 0x3F));
  }
}

}  // namespace megalith::data
