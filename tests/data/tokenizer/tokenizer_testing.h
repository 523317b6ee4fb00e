#pragma once

#include <random>
#include <string>
#include <vector>

#include "data/data_testing.h"
#include "data/tokenizer/bpe/train_bpe.h"
#include "data/tokenizer/bpe_tokenizer.h"
#include "data/tokenizer/byte_alphabet.h"
#include "data/utf8.h"

namespace megalith::data {

inline constexpr std::string_view kLlama3Pattern =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";

// Sentences with a few hundred different words, always the same.
inline std::string training_text() {
  std::mt19937 random(42);
  std::vector<std::string> words;
  for (int i = 0; i < 300; ++i) {
    std::string word;
    for (size_t length = 1 + random() % 9; length > 0; --length) word.push_back("etaoinshrdlu"[random() % 12]);
    words.push_back(word);
  }
  std::string text;
  for (int i = 0; i < 20000; ++i) {
    text += words[std::min(random() % 300, random() % 300)];
    text += i % 17 == 0 ? ".\n" : i % 41 == 0 ? ", 1984 \u00E9\u4E00\u4E8C's " : " ";
  }
  return text;
}

inline const TrainedBpe& trained_bpe() {
  static const TrainedBpe bpe = [] {
    BpeTrainer trainer;
    trainer.add(training_text());
    return trainer.train(700);
  }();
  return bpe;
}

inline std::string base64(std::string_view bytes) {
  constexpr std::string_view kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  for (size_t i = 0; i < bytes.size(); i += 3) {
    uint32_t group = 0;
    for (size_t k = 0; k < 3; ++k)
      group = group << 8 | (i + k < bytes.size() ? static_cast<unsigned char>(bytes[i + k]) : 0u);
    for (size_t k = 0; k < 4; ++k) {
      text.push_back(i + k <= bytes.size() ? kDigits[group >> (18 - 6 * k) & 63] : '=');
    }
  }
  return text;
}

// The trained tokens as a tiktoken file; `hole` moves all ranks from there on by one.
inline std::string as_tiktoken(const TrainedBpe& bpe, size_t hole) {
  std::string text;
  for (size_t i = 0; i < bpe.tokens.size(); ++i) {
    text += base64(bpe.tokens[i]) + " " + std::to_string(i < hole ? i : i + 1) + "\n";
  }
  return text;
}

inline std::string json_string(std::string_view text) {
  std::string json = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') json.push_back('\\');
    json.push_back(c);
  }
  return json + "\"";
}

struct HuggingFaceShape {
  std::string pre_tokenizer = R"({"type":"Sequence","pretokenizers":[{"type":"Split","pattern":{"Regex":)" +
                              json_string(kLlama3Pattern) +
                              R"(},"behavior":"Isolated","invert":false},)"
                              R"({"type":"ByteLevel","add_prefix_space":false,"use_regex":false}]})";
  std::string normalizer = "null";
  std::string options = R"("ignore_merges":true,)";
  std::vector<std::string> unreachable;  // tokens without a merge
  bool merges_as_pairs = true;
  std::string added_options;
};

inline std::string as_tokenizer_json(const TrainedBpe& bpe, const HuggingFaceShape& shape) {
  std::string vocab, merges;
  int64_t id = 0;
  for (const std::string& token : bpe.tokens)
    vocab += json_string(to_byte_alphabet(token)) + ":" + std::to_string(id++) + ",";
  for (const std::string& token : shape.unreachable) {
    vocab += json_string(to_byte_alphabet(token)) + ":" + std::to_string(id++) + ",";
  }
  vocab.pop_back();
  for (const auto& [left, right] : bpe.merges) {
    const std::string a = to_byte_alphabet(bpe.tokens[static_cast<size_t>(left)]);
    const std::string b = to_byte_alphabet(bpe.tokens[static_cast<size_t>(right)]);
    merges +=
        shape.merges_as_pairs ? "[" + json_string(a) + "," + json_string(b) + "]," : json_string(a + " " + b) + ",";
  }
  merges.pop_back();
  const auto added = [&](const std::string& content, int64_t added_id) {
    return R"({"id":)" + std::to_string(added_id) + R"(,"content":)" + json_string(content) + shape.added_options +
           R"(,"special":true})";
  };
  return R"({"version":"1.0","added_tokens":[)" + added("<|begin_of_text|>", id) + "," +
         added("<|end_of_text|>", id + 1) + R"(],"normalizer":)" + shape.normalizer + R"(,"pre_tokenizer":)" +
         shape.pre_tokenizer + R"(,"model":{"type":"BPE","dropout":null,"byte_fallback":false,)" + shape.options +
         R"("vocab":{)" + vocab + R"(},"merges":[)" + merges + "]}}";
}

// Text that is often odd: letters of several scripts, marks, white space, digits, bytes that are not UTF-8.
inline std::string odd_text(std::mt19937& random, size_t length, bool valid = false) {
  static const std::vector<std::string> units = {
      "e",      "t",      "a",        "the",        " ",      " ",      "\n",        "'s",
      "'LL",    "1",      "23",       ".",          "\t",     "\r",     "\u00E9",    "\u0301",
      "\u4E00", "\u3000", "\u00B2",   "\U0001F600", "\u200D", "\u017F", "CamelCase", "<|endoftext|>",
      "//",     "\xFF",   "\xE4\xB8", "\xC0\x80"};
  const size_t count = units.size() - (valid ? 3 : 0);
  std::string text;
  while (text.size() < length) text += units[random() % count];
  return text;
}

}  // namespace megalith::data
