#include "core/hash/digest.h"

#include <gtest/gtest.h>

namespace megalith {
namespace {

// Long enough for each of XXH3's ways of taking an input.
std::string long_text(size_t bytes) {
  std::string text;
  for (size_t i = 0; i < bytes; ++i) text += static_cast<char>('a' + i % 26);
  return text;
}

// Digests are on disk: these must never change.
TEST(Digest, KnownAnswers) {
  EXPECT_EQ(digest_of(""), "2d06800538d394c2");
  EXPECT_EQ(digest_of("abc"), "78af5f94892f3950");
  EXPECT_EQ(hash128("").hex(), "99aa06d3014798d86001c324468d497f");
  EXPECT_EQ(hash128("abc").hex(), "06b05ab6733a618578af5f94892f3950");
  EXPECT_EQ(digest_of(long_text(200)), "e12dae8ffe57bbc9");
  EXPECT_EQ(digest_of(long_text(1000)), "e153425558d7da5d");
  EXPECT_EQ(hash64(std::as_bytes(std::span("abc", 3)), 7), 0x48ff56f569e39912u);
}

TEST(Digest, PiecesGiveTheDigestOfTheWhole) {
  const std::string text = long_text(1000);
  Digest digest;
  digest.add(std::string_view(text).substr(0, 300));
  Digest copy = digest;
  digest.add("something else");
  copy.add(std::string_view(text).substr(300));
  EXPECT_EQ(copy.hex(), digest_of(text));
  digest = copy;
  EXPECT_EQ(digest.hex(), digest_of(text));
}

TEST(Digest, IsToldByItsDigits) {
  EXPECT_TRUE(is_digest("0123456789abcdef"));
  for (const char* text : {"", "0123456789abcde", "0123456789abcdef0", "0123456789ABCDEF", "0123456789abcdeg"})
    EXPECT_FALSE(is_digest(text)) << text;
}

}  // namespace
}  // namespace megalith
