#include "data/tokenizer/tokenizer.h"

#include <array>
#include <filesystem>

#include "core/error.h"
#include "data/near_names.h"
#include "data/tokenizer/bpe_tokenizer.h"

namespace megalith::data {

namespace {
struct Known {
  std::string_view type;
  Vocabulary vocabulary;  // size 0: depends on the tokenizer's files
};

constexpr std::string_view kSupported = "GPT2BPETokenizer, HuggingFaceTokenizer, TikTokenizer and ByteTokenizer";

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
  user_error("unknown tokenizer {}{}; there are {}", type, near.empty() ? "" : ", did you mean " + near[0] + "?",
             kSupported);
}

class WholeTextStream : public EncodeStream {
 public:
  WholeTextStream(const Tokenizer& tokenizer, const StreamOptions& options)
      : tokenizer_(tokenizer), options_(options) {}

  void add(std::string_view piece, std::vector<int32_t>&) override { text_ += piece; }
  void finish(std::vector<int32_t>& ids) override {
    if (options_.look_for_special_text) {
      special_texts_ = tokenizer_.encode_with_specials(text_, ids, options_.special_text);
    } else {
      tokenizer_.encode(text_, ids);
    }
  }
  int64_t special_texts() const override { return special_texts_; }

 private:
  const Tokenizer& tokenizer_;
  StreamOptions options_;
  std::string text_;
  int64_t special_texts_ = 0;
};

// For a tokenizer to which every byte is a text of its own.
class ByteStream : public EncodeStream {
 public:
  explicit ByteStream(const Tokenizer& tokenizer) : tokenizer_(tokenizer) {}
  void add(std::string_view piece, std::vector<int32_t>& ids) override { tokenizer_.encode(piece, ids); }
  void finish(std::vector<int32_t>&) override {}

 private:
  const Tokenizer& tokenizer_;
};
}  // namespace

int64_t Tokenizer::encode_with_specials(std::string_view text, std::vector<int32_t>& ids, SpecialText) const {
  encode(text, ids);
  return 0;
}

std::vector<int32_t> Tokenizer::encode(std::string_view text) const {
  std::vector<int32_t> ids;
  encode(text, ids);
  return ids;
}

std::unique_ptr<EncodeStream> Tokenizer::open_stream(const StreamOptions& options) const {
  return std::make_unique<WholeTextStream>(*this, options);
}

std::unique_ptr<EncodeStream> ByteTokenizer::open_stream(const StreamOptions&) const {
  return std::make_unique<ByteStream>(*this);
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
  const auto file = [&](const std::string& path, std::string_view key, std::string_view flag) -> const std::string& {
    if (path.empty()) user_error("tokenizer {} needs its file: give model.tokenizer.{} ({})", known.type, key, flag);
    return path;
  };
  if (!config.eod_token.empty() && known.type != "HuggingFaceTokenizer") {
    user_error("model.tokenizer.eod_token (--eod-token) is for HuggingFaceTokenizer; {} knows its own", known.type);
  }
  if (known.type == "ByteTokenizer") return std::make_unique<ByteTokenizer>();
  if (known.type == "GPT2BPETokenizer") {
    const std::string& vocab = file(config.vocab_file, "vocab_file", "--vocab-file");
    return std::make_unique<BpeTokenizer>(read_gpt2(vocab, file(config.merge_file, "merge_file", "--merge-file")));
  }
  if (known.type == "TikTokenizer") {
    const std::string& model = file(config.model, "model", "--tokenizer-model");
    return std::make_unique<BpeTokenizer>(read_tiktoken(model, config.tiktoken_pattern));
  }
  if (known.type == "HuggingFaceTokenizer") {
    return std::make_unique<BpeTokenizer>(
        read_hugging_face(file(config.model, "model", "--tokenizer-model"), config.eod_token));
  }
  user_error("tokenizer {} is not supported; there are {}", known.type, kSupported);
}

namespace {
bool files_are_here(const config::Tokenizer& config) {
  const auto here = [](const std::string& path) {
    std::error_code ignored;
    return !path.empty() && std::filesystem::exists(path, ignored);
  };
  if (config.type == "GPT2BPETokenizer") return here(config.vocab_file) && here(config.merge_file);
  if (config.type == "TikTokenizer") return here(config.model) && !config.tiktoken_pattern.empty();
  return config.type == "HuggingFaceTokenizer" && here(config.model);
}

// Such files may hold fewer ids than the type implies.
bool files_are_to_come(const config::Tokenizer& config) {
  return config.type == "GPT2BPETokenizer" && !config.vocab_file.empty() && !files_are_here(config);
}
}  // namespace

bool names_files(const config::Tokenizer& config) {
  return config.type == "ByteTokenizer" || !config.vocab_file.empty() || !config.merge_file.empty() ||
         !config.model.empty();
}

bool can_make_tokenizer(const config::Tokenizer& config) {
  return config.type == "ByteTokenizer" || files_are_here(config);
}

Vocabulary vocabulary_of(const config::Tokenizer& config) {
  const Known& known = find_known(config.type);
  Vocabulary vocabulary = known.vocabulary;
  if (files_are_here(config)) {
    const auto tokenizer = make_tokenizer(config);
    vocabulary = {tokenizer->vocab_size(), tokenizer->eod()};
  }
  if (config.vocab_size > 0) {
    if (config.vocab_size < vocabulary.size) {
      if (!files_are_to_come(config)) {
        user_error("model.tokenizer.vocab_size {} is less than the {} ids of {}", config.vocab_size, vocabulary.size,
                   known.type);
      }
      vocabulary.eod = -1;
    }
    vocabulary.size = config.vocab_size;
  }
  if (vocabulary.size == 0) {
    if (!config.model.empty() && !files_are_here(config)) make_tokenizer(config);  // says what is wrong with the file
    user_error(
        "how many ids tokenizer {} has is in its files: give model.tokenizer.model, or model.tokenizer.vocab_size to "
        "train on tokens that are already there",
        known.type);
  }
  return vocabulary;
}

}  // namespace megalith::data
