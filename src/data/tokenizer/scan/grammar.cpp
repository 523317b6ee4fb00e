#include "data/tokenizer/scan/grammar.h"

#include <array>
#include <string>

namespace megalith::data {

namespace {
struct Spelling {
  Grammar grammar;
  std::string_view pattern;
};

// Equivalent spellings share a grammar. A pattern is matched as a whole: a grammar is never guessed.
constexpr std::array kSpellings = {
    Spelling{Grammar::gpt2, R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)"},
    Spelling{Grammar::gpt2, R"('(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)"},
    Spelling{Grammar::gpt2, R"('(?:[sdmt]|ll|ve|re)| ?\p{L}++| ?\p{N}++| ?[^\s\p{L}\p{N}]++|\s++$|\s+(?!\S)|\s)"},
    Spelling{Grammar::cl100k,
             R"('(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+|)"
             R"(\s++$|\s*[\r\n]|\s+(?!\S)|\s)"},
    Spelling{Grammar::llama3,
             R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|)"
             R"(\s*[\r\n]+|\s+(?!\S)|\s+)"},
    Spelling{Grammar::llama3, R"('(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|)"
                              R"(\s*[\r\n]+|\s+(?!\S)|\s+)"},
    Spelling{Grammar::llama3,
             R"('(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]++[\r\n]*|)"
             R"(\s*[\r\n]|\s+(?!\S)|\s+)"},
    Spelling{Grammar::o200k, R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+)"
                             R"((?i:'s|'t|'re|'ve|'m|'ll|'d)?|)"
                             R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*)"
                             R"((?i:'s|'t|'re|'ve|'m|'ll|'d)?|)"
                             R"(\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)"},
    Spelling{Grammar::qwen2, R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|)"
                             R"(\s*[\r\n]+|\s+(?!\S)|\s+)"},
};

// Some files hold the characters CR and LF where others hold their escapes.
std::string with_escapes(std::string_view pattern) {
  std::string escaped;
  for (const char c : pattern) {
    if (c == '\r') {
      escaped += "\\r";
    } else if (c == '\n') {
      escaped += "\\n";
    } else {
      escaped.push_back(c);
    }
  }
  return escaped;
}
}  // namespace

std::string_view grammar_name(Grammar grammar) {
  switch (grammar) {
    case Grammar::gpt2:
      return "gpt2";
    case Grammar::cl100k:
      return "cl100k";
    case Grammar::llama3:
      return "llama3";
    case Grammar::o200k:
      return "o200k";
    case Grammar::qwen2:
      return "qwen2";
  }
  return "unknown";
}

std::optional<Grammar> grammar_of_pattern(std::string_view pattern) {
  const std::string wanted = with_escapes(pattern);
  for (const Spelling& spelling : kSpellings) {
    if (spelling.pattern == wanted) return spelling.grammar;
  }
  return std::nullopt;
}

}  // namespace megalith::data
