#pragma once

#include <optional>
#include <string_view>

namespace megalith::data {

// How a tokenizer cuts text into the pieces inside which it merges. Each stands for a regular expression (grammar.cpp).
enum class Grammar {
  gpt2,    // GPT-2, r50k, p50k
  cl100k,  // as tiktoken ships it: white space that ends the text is one piece
  llama3,
  o200k,
  qwen2,
};

std::string_view grammar_name(Grammar grammar);

// The grammar of a regular expression as tokenizer.json files write it; nothing for one that is not known.
std::optional<Grammar> grammar_of_pattern(std::string_view pattern);

}  // namespace megalith::data
