#include "core/hash/crypto.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace megalith {
namespace {

std::string sha256(std::string_view text) {
  Sha256 hash;
  hash.add(text);
  return hash.hex();
}

std::string hex(std::string_view bytes) {
  std::string text;
  for (const char byte : bytes) text += fmt::format("{:02x}", static_cast<unsigned char>(byte));
  return text;
}

// Vectors of FIPS 180-4 and NIST's examples.
TEST(Sha256, AgreesWithTheStandard) {
  EXPECT_EQ(sha256(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(sha256("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(sha256("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  EXPECT_EQ(sha256(std::string(1000000, 'a')), "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
  Sha256 pieces;
  for (int i = 0; i < 1000; ++i) pieces.add(std::string(static_cast<size_t>(i), 'a'));
  EXPECT_EQ(pieces.hex(), sha256(std::string(499500, 'a')));
}

// RFC 4231, cases 1, 2 and 6, whose key is longer than a block; and an empty key.
TEST(KeyedHash, KnownAnswers) {
  EXPECT_EQ(hex(keyed_hash(std::string(20, '\x0b'), "Hi There")),
            "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7");
  EXPECT_EQ(hex(keyed_hash("Jefe", "what do ya want for nothing?")),
            "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
  EXPECT_EQ(hex(keyed_hash(std::string(131, '\xaa'), "Test Using Larger Than Block-Size Key - Hash Key First")),
            "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54");
  EXPECT_EQ(hex(keyed_hash({}, {})), "b613679a0814d9ec772f95d778c35fc5ff1697c493715653c6c712144292c5ad");
}

TEST(ConstantTime, ComparesAllBytes) {
  EXPECT_TRUE(equal_in_constant_time("", ""));
  EXPECT_TRUE(equal_in_constant_time("secret", "secret"));
  for (const char* other : {"", "secre", "secret!", "Secret", "secreT"})
    EXPECT_FALSE(equal_in_constant_time("secret", other)) << other;
}

}  // namespace
}  // namespace megalith
