#include "data/tokenizer/scan/scanner.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <random>

#include "data/tokenizer/oracle_scanner.h"

namespace megalith::data {
namespace {

constexpr Grammar kGrammars[] = {Grammar::gpt2, Grammar::cl100k, Grammar::llama3, Grammar::o200k, Grammar::qwen2};

std::string utf8(uint32_t code) {
  std::string text;
  append_utf8(text, code);
  return text;
}

std::vector<std::string> scan(Grammar grammar, const std::string& text) {
  std::vector<std::string> pieces;
  for (const std::string_view piece : Scanner(grammar).pieces(text)) pieces.emplace_back(piece);
  return pieces;
}

std::string shown(const std::vector<std::string>& pieces) {
  std::string text;
  for (const std::string& piece : pieces) {
    text += '[';
    for (const char c : piece) {
      char hex[8];
      const auto byte = static_cast<unsigned char>(c);
      std::snprintf(hex, sizeof hex, byte > 0x20 && byte < 0x7F ? "%c" : "\\x%02X", byte);
      text += hex;
    }
    text += ']';
  }
  return text;
}

void expect_as_oracle(const std::string& text) {
  for (const Grammar grammar : kGrammars) {
    const auto found = scan(grammar, text), wanted = oracle::pieces(grammar, text);
    ASSERT_EQ(found, wanted) << grammar_name(grammar) << "\nfound  " << shown(found) << "\nwanted " << shown(wanted);
  }
}

using Pieces = std::vector<std::string>;

TEST(Scanner, CutsAsTheGrammarsSay) {
  const std::string text = "Don't  stop\n\n\t12345 x's!\r\n";
  EXPECT_EQ(scan(Grammar::gpt2, text),
            (Pieces{"Don", "'t", " ", " stop", "\n\n", "\t", "12345", " x", "'s", "!", "\r\n"}));
  EXPECT_EQ(scan(Grammar::llama3, text),
            (Pieces{"Don", "'t", " ", " stop", "\n\n", "\t", "123", "45", " x", "'s", "!\r\n"}));
  EXPECT_EQ(scan(Grammar::qwen2, "a 12"), (Pieces{"a", " ", "1", "2"}));
  EXPECT_EQ(scan(Grammar::o200k, "camelCase HTTPServer's /*a\n/b"),
            (Pieces{"camel", "Case", " HTTPServer's", " /*", "a", "\n", "/b"}));
  EXPECT_EQ(scan(Grammar::o200k, "x.\n//y's's"), (Pieces{"x", ".\n//", "y's", "'s"}));
}

TEST(Scanner, WhiteSpaceThatEndsTheTextIsWhereCl100kAndLlama3Differ) {
  EXPECT_EQ(scan(Grammar::cl100k, "a\n  "), (Pieces{"a", "\n  "}));
  EXPECT_EQ(scan(Grammar::llama3, "a\n  "), (Pieces{"a", "\n", "  "}));
  EXPECT_EQ(scan(Grammar::cl100k, "a\n  b"), (Pieces{"a", "\n", " ", " b"}));
}

TEST(Scanner, LongSIsAContractionWithoutCase) {
  const std::string text = "x'\u017F";
  EXPECT_EQ(scan(Grammar::gpt2, text), (Pieces{"x", "'", "\u017F"}));
  EXPECT_EQ(scan(Grammar::cl100k, text), (Pieces{"x", "'\u017F"}));
  EXPECT_EQ(scan(Grammar::o200k, text), (Pieces{text}));
}

TEST(Scanner, ApostropheContractsOnlyWhereAPieceBegins) {
  EXPECT_EQ(scan(Grammar::gpt2, " 's"), (Pieces{" '", "s"}));
  EXPECT_EQ(scan(Grammar::cl100k, " 's"), (Pieces{" '", "s"}));
}

TEST(Scanner, EveryWhiteSpaceEverywhere) {
  std::vector<std::string> spaces;
  for (uint32_t code = 0; code < 0x110000; ++code) {
    if (set_of(class_of(code)) & kSpaces) spaces.push_back(utf8(code));
  }
  ASSERT_EQ(spaces.size(), 25u);
  for (const uint32_t code : {0x1Cu, 0x1Fu, 0x180Eu, 0x200Bu, 0xFEFFu}) spaces.push_back(utf8(code));
  const std::vector<std::string> others = {"", "a", "7", "!", "\u0301", "'s", "\n", " ", "\u4E00"};
  for (const std::string& space : spaces) {
    for (const std::string& before : others) {
      for (const std::string& after : others) {
        expect_as_oracle(before + space + after);
        expect_as_oracle(before + space + space + after);
        expect_as_oracle(before + " " + space + after);
        expect_as_oracle(before + "\n" + space + after + std::string(70, 'x'));
      }
    }
  }
}

TEST(Scanner, AgreesWithTheOracleOnRandomText) {
  const std::vector<std::vector<std::string>> alphabets = {
      {"a", "B", " ", "\n", "'", "s", "1", "!"},
      {"a", "b", "C", "D", " ", " ", "'", "s", "t", "l", "l", "r", "e", "v", "d", "m", "S", "E"},
      {" ", "\n", "\r", "\t", "\v", "a", "."},
      {"/", "\n", "\r", "*", "a", " ", "A"},
      {"0", "1", "9", "\u00B2", "\u3007", "a", " ", "\u0663"},
      {"A", "a", "\u01C5", "\u02B0", "\u4E00", "\u0301", "\u0903", "'", "s", "\u017F", " ", "!"},
      {"\x80", "\xC0", "\xE0\x80", "\xED\xA0\x80", "\xF0\x9F\x98", "\xF5", "a", " ", "'", "\n", "\xC3\xA9"},
      {"\u00A0", "\u2003", "\u2028", "\u0085", " ", "\n", "a", "1", "-", "\u200D", "\u200B"},
      {"\U0001F469", "\u200D", "\uFE0F", "\U0001F1E6", "\U0001F3FD", "a", " ", "1", "\u20E3"},
      {"don't", " they're", " I'LL", " camelCase", " foo_bar", " 3.14159", "\n    ", "\n\n", " (x)", "://", ", "}};
  std::mt19937 random(20240607);
  for (const auto& alphabet : alphabets) {
    for (int i = 0; i < 3000; ++i) {
      std::string text;
      const size_t length = random() % (i % 10 == 0 ? 200 : 24);
      for (size_t k = 0; k < length; ++k) text += alphabet[random() % alphabet.size()];
      expect_as_oracle(text);
      if (HasFatalFailure()) return;
    }
  }
}

TEST(Scanner, AgreesWithTheOracleOnRandomCodePoints) {
  std::mt19937 random(7);
  for (int i = 0; i < 3000; ++i) {
    std::string text;
    for (int k = 0; k < 40; ++k) {
      const uint32_t limits[] = {0x80, 0x100, 0x800, 0x3000, 0x10000, 0x110000};
      const uint32_t code = static_cast<uint32_t>(random()) % limits[random() % 6];
      if (code < 0xD800 || code > 0xDFFF) append_utf8(text, code);
    }
    expect_as_oracle(text);
    if (HasFatalFailure()) return;
  }
}

TEST(Scanner, PieceLengthsAtEveryOffset) {
  for (const char* unit : {"a", "Z", "7", "!", " ", "\n", "\u00E9", "\u4E00"}) {
    for (const int length : {1, 2, 3, 15, 16, 31, 32, 33, 61, 62, 63, 64, 65, 66, 127, 128, 129, 255, 256}) {
      std::string run;
      for (int i = 0; i < length; ++i) run += unit;
      for (size_t offset = 0; offset < 66; offset += 3) {
        expect_as_oracle(std::string(offset, offset % 2 ? 'x' : '-') + run + (offset % 4 < 2 ? " y" : "\n'll"));
        if (HasFatalFailure()) return;
      }
    }
  }
}

// Text that ends where a page ends, with nothing readable behind it.
TEST(Scanner, NeverReadsBehindTheText) {
  const auto page = static_cast<size_t>(::sysconf(_SC_PAGESIZE));
  void* memory = ::mmap(nullptr, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(memory, MAP_FAILED);
  ASSERT_EQ(::mprotect(static_cast<char*>(memory) + page, page, PROT_NONE), 0);
  const std::string tails[] = {"'",        "'l",           " ",  "\n ", "a'",   "\xC3",
                               "\xE4\xB8", "\xF0\x9F\x98", "12", "' ",  "//\n", "a"};
  for (const std::string& tail : tails) {
    for (size_t length = tail.size(); length < 140; ++length) {
      std::string text = std::string(length - tail.size(), 'q') + tail;
      for (size_t i = 5; i + tail.size() < text.size(); i += 6) text[i] = ' ';
      char* at = static_cast<char*>(memory) + page - text.size();
      std::memcpy(at, text.data(), text.size());
      for (const Grammar grammar : kGrammars) {
        size_t bytes = 0;
        for (const std::string_view piece : Scanner(grammar).pieces({at, text.size()})) bytes += piece.size();
        ASSERT_EQ(bytes, text.size());
      }
    }
  }
  ::munmap(memory, 2 * page);
}

TEST(GrammarOfPattern, KnowsSpellingsAndNothingElse) {
  EXPECT_EQ(grammar_of_pattern(R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)"),
            Grammar::gpt2);
  EXPECT_EQ(grammar_of_pattern("(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}| "
                               "?[^\\s\\p{L}\\p{N}]+[\r\n]*|\\s*[\r\n]+|\\s+(?!\\S)|\\s+"),
            Grammar::qwen2);
  EXPECT_FALSE(grammar_of_pattern("").has_value());
  EXPECT_FALSE(grammar_of_pattern(R"(\s+)").has_value());
}

}  // namespace
}  // namespace megalith::data
