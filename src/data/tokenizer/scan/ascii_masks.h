#pragma once

#include <cstdint>
#ifdef __AVX2__
#include <immintrin.h>
#endif

namespace megalith::data::scanner {

// Bit i says what byte i of 64 is.
struct AsciiMasks {
  uint64_t letter = 0;
  uint64_t upper = 0;
  uint64_t digit = 0;
  uint64_t blank = 0;  // U+0020 alone
  uint64_t white = 0;
  uint64_t newline = 0;  // CR, LF
  uint64_t apostrophe = 0;
  uint64_t slash = 0;
  uint64_t high = 0;  // not ASCII
};

#ifdef __AVX2__

inline AsciiMasks ascii_masks(const char* text) {
  const __m256i halves[2] = {_mm256_loadu_si256(reinterpret_cast<const __m256i*>(text)),
                             _mm256_loadu_si256(reinterpret_cast<const __m256i*>(text + 32))};
  const auto mask = [&](auto&& test) {
    const auto low = static_cast<uint32_t>(_mm256_movemask_epi8(test(halves[0])));
    const auto high = static_cast<uint32_t>(_mm256_movemask_epi8(test(halves[1])));
    return low | static_cast<uint64_t>(high) << 32;
  };
  const auto equal = [&](char c) { return mask([c](__m256i v) { return _mm256_cmpeq_epi8(v, _mm256_set1_epi8(c)); }); };
  // first <= byte < first + count, after `fold` bits are set
  const auto between = [&](char first, char count, char fold) {
    return mask([=](__m256i v) {
      const __m256i shifted = _mm256_sub_epi8(_mm256_or_si256(v, _mm256_set1_epi8(fold)), _mm256_set1_epi8(first));
      return _mm256_cmpeq_epi8(_mm256_min_epu8(shifted, _mm256_set1_epi8(static_cast<char>(count - 1))), shifted);
    });
  };
  AsciiMasks masks;
  masks.letter = between('a', 26, 0x20);
  masks.upper = between('A', 26, 0);
  masks.digit = between('0', 10, 0);
  masks.blank = equal(' ');
  masks.white = between('\t', 5, 0) | masks.blank;
  masks.newline = equal('\n') | equal('\r');
  masks.apostrophe = equal('\'');
  masks.slash = equal('/');
  masks.high = mask([](__m256i v) { return v; });
  return masks;
}

#else

inline AsciiMasks ascii_masks(const char* text) {
  AsciiMasks masks;
  for (int i = 0; i < 64; ++i) {
    const auto c = static_cast<unsigned char>(text[i]);
    const uint64_t bit = uint64_t{1} << i;
    if (c >= 'A' && c <= 'Z') masks.upper |= bit;
    if ((c | 0x20) >= 'a' && (c | 0x20) <= 'z') masks.letter |= bit;
    if (c >= '0' && c <= '9') masks.digit |= bit;
    if (c == ' ') masks.blank |= bit;
    if (c == ' ' || (c >= '\t' && c <= '\r')) masks.white |= bit;
    if (c == '\n' || c == '\r') masks.newline |= bit;
    if (c == '\'') masks.apostrophe |= bit;
    if (c == '/') masks.slash |= bit;
    if (c >= 0x80) masks.high |= bit;
  }
  return masks;
}

#endif

}  // namespace megalith::data::scanner
