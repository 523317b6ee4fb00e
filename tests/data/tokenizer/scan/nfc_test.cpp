#include "data/tokenizer/scan/nfc.h"

#include <gtest/gtest.h>

#include "data/tokenizer/scan/unicode_classes.h"

namespace megalith::data {
namespace {

std::string nfc(const std::string& text) {
  std::string storage;
  return std::string(normalize_nfc(text, storage));
}

TEST(Nfc, LeavesCleanTextAlone) {
  const std::string text = "plain text, caf\u00E9, \u4E2D\u6587, \uD55C\uAD6D\uC5B4";
  std::string storage;
  EXPECT_EQ(normalize_nfc(text, storage).data(), text.data());
  EXPECT_TRUE(storage.empty());
}

TEST(Nfc, ComposesAndReorders) {
  EXPECT_EQ(nfc("cafe\u0301 noir"), "caf\u00E9 noir");
  EXPECT_EQ(nfc("longer than one word e\u0301"), "longer than one word \u00E9");
  EXPECT_EQ(nfc("\u1E9B\u0323"), "\u1E9B\u0323");
  EXPECT_EQ(nfc("a\u0323\u0307"), "\u1EA1\u0307");
  EXPECT_EQ(nfc("a\u0307\u0323"), "\u1EA1\u0307");
  EXPECT_EQ(nfc("D\u0307\u0323"), "\u1E0C\u0307");
  EXPECT_EQ(nfc("\u212B\u2126\u212A"), "\u00C5\u03A9K");
  EXPECT_EQ(nfc("\u0958"), "\u0915\u093C");
  EXPECT_EQ(nfc("\u1112\u1161\u11AB"), "\uD55C");
  EXPECT_EQ(nfc("\uD558\u11AB"), "\uD55C");
  EXPECT_EQ(nfc("\u1112\u0301\u1161"), "\u1112\u0301\u1161");
  EXPECT_EQ(nfc("\u0301a"), "\u0301a");
  EXPECT_EQ(nfc("\u0344"), "\u0308\u0301");
}

TEST(Nfc, KeepsBytesThatAreNotUtf8) {
  EXPECT_EQ(nfc("\xFF\u0301\xC3"), "\xFF\u0301\xC3");
  EXPECT_EQ(nfc("e\u0301\xE4\xB8"), "\u00E9\xE4\xB8");
  EXPECT_EQ(nfc("\x80"
                "e\u0301\x80"),
            "\x80\u00E9\x80");
}

TEST(Nfc, LongRunsOfMarks) {
  std::string text = "e";
  for (int i = 0; i < 200000; ++i) text += i % 2 ? "\u0301" : "\u0323";
  const std::string normal = nfc(text);
  EXPECT_EQ(nfc(normal), normal);
}

TEST(UnicodeClasses, KnowTheirVersionAndSomeCharacters) {
  EXPECT_FALSE(unicode_version().empty());
  EXPECT_EQ(class_of('a'), CharClass::lower);
  EXPECT_EQ(class_of(0x01C5), CharClass::upper);
  EXPECT_EQ(class_of(0x02B0), CharClass::caseless);
  EXPECT_EQ(class_of(0x4E00), CharClass::caseless);
  EXPECT_EQ(class_of(0x9FFF), CharClass::caseless);
  EXPECT_EQ(class_of(0x0301), CharClass::mark);
  EXPECT_EQ(class_of(0x3007), CharClass::number);
  EXPECT_EQ(class_of(0x00B2), CharClass::number);
  EXPECT_EQ(class_of(0x2028), CharClass::space);
  EXPECT_EQ(class_of('\r'), CharClass::newline);
  for (const uint32_t code : {0x1Fu, 0x180Eu, 0x200Bu, 0xFEFFu, 0xE000u, 0x1F600u, 0x10FFFFu}) {
    EXPECT_EQ(class_of(code), CharClass::other);
  }
}

}  // namespace
}  // namespace megalith::data
