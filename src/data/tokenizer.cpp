#include "data/tokenizer.h"

#include <array>

#include "core/error.h"
#include "data/near_names.h"

namespace megalith::data {

namespace {
struct Known {
  std::string_view type;
  Vocabulary vocabulary;  // size 0: depends on the tokenizer's files
};

constexpr std::array kKnown = {
    Known{"ByteTokenizer", {ByteTokenizer::kEod + 1, ByteTokenizer::kEod}},
    Known{"GPT2BPETokenizer", {50257, 50256}},
    Known{"HuggingFaceTokenizer", {}},
    Known{"TikTokenizer", {}},
    Known{"SentencePieceTokenizer", {}},
    Known{"GPTSentencePieceTokenizer", {}},
    Known{"Llama2Tokenizer", {}},
    Known{"BertWordPieceLowerCase", {}},
    Known{"BertWordPieceCase", {}},
    Known{"NullTokenizer", {}},
};

const Known& find_known(const std::string& type) {
  std::vector<std::string> names;
  for (const Known& known : kKnown) {
    if (known.type == type) return known;
    names.emplace_back(known.type);
  }
  const auto near = near_names(type, names, 1);
  user_error("unknown tokenizer {}{}", type, near.empty() ? "; use ByteTokenizer" : "; did you mean " + near[0] + "?");
}
}  // namespace

std::vector<int32_t> Tokenizer::encode(std::string_view text) const {
  std::vector<int32_t> ids;
  encode(text, ids);
  return ids;
}

void ByteTokenizer::encode(std::string_view text, std::vector<int32_t>& ids) const {
  ids.reserve(ids.size() + text.size());
  for (const char c : text) ids.push_back(static_cast<unsigned char>(c));
}

std::string ByteTokenizer::decode(std::span<const int32_t> ids) const {
  std::string bytes;
  for (const int32_t id : ids) {
    if (id < 0 || id > kEod) user_error("id {} is not in the vocabulary of ByteTokenizer (0 to {})", id, kEod);
    if (id != kEod) bytes.push_back(static_cast<char>(id));
  }
  return bytes;
}

std::unique_ptr<Tokenizer> make_tokenizer(const config::Tokenizer& config) {
  const Known& known = find_known(config.type);
  if (known.type != "ByteTokenizer") user_error("tokenizer {} is not supported; use ByteTokenizer", known.type);
  return std::make_unique<ByteTokenizer>();
}

Vocabulary vocabulary_of(const config::Tokenizer& config) {
  const Known& known = find_known(config.type);
  Vocabulary vocabulary = known.vocabulary;
  if (config.vocab_size > 0) {
    if (config.vocab_size < vocabulary.size) {
      user_error("model.tokenizer.vocab_size {} is less than the {} ids of {}", config.vocab_size, vocabulary.size,
                 known.type);
    }
    vocabulary.size = config.vocab_size;
  }
  if (vocabulary.size == 0) {
    user_error(
        "tokenizer {} is not supported; use ByteTokenizer, or give model.tokenizer.vocab_size to train on tokens "
        "that are already there",
        known.type);
  }
  return vocabulary;
}

}  // namespace megalith::data
