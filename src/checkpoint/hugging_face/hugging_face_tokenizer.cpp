#include "checkpoint/hugging_face/hugging_face_tokenizer.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "core/file.h"
#include "data/tokenizer/byte_alphabet.h"
#include "data/tokenizer/tokenizer.h"

namespace megalith::checkpoint {

namespace fs = std::filesystem;
using nlohmann::ordered_json;

namespace {

constexpr const char* kEndOfText = "<|endoftext|>";

// Bytes as a BPE without merges: id 0 to 255 for the bytes, 256 for the end of a text.
ordered_json tokenizer_of_bytes() {
  ordered_json vocabulary;
  for (int byte = 0; byte < data::ByteTokenizer::kEod; ++byte) {
    vocabulary[data::to_byte_alphabet(std::string(1, static_cast<char>(byte)))] = byte;
  }
  const ordered_json byte_level{
      {"type", "ByteLevel"}, {"add_prefix_space", false}, {"trim_offsets", true}, {"use_regex", true}};
  return {{"version", "1.0"},
          {"truncation", nullptr},
          {"padding", nullptr},
          {"added_tokens",
           {{{"id", data::ByteTokenizer::kEod},
             {"content", kEndOfText},
             {"single_word", false},
             {"lstrip", false},
             {"rstrip", false},
             {"normalized", false},
             {"special", true}}}},
          {"normalizer", nullptr},
          {"pre_tokenizer", byte_level},
          {"post_processor", nullptr},
          {"decoder", byte_level},
          {"model",
           {{"type", "BPE"},
            {"dropout", nullptr},
            {"unk_token", nullptr},
            {"continuing_subword_prefix", nullptr},
            {"end_of_word_suffix", nullptr},
            {"fuse_unk", false},
            {"byte_fallback", false},
            {"ignore_merges", false},
            {"vocab", vocabulary},
            {"merges", ordered_json::array()}}}};
}

// How a tokenizer.json calls the token; empty: it does not.
std::string added_token(const std::string& tokenizer_json, int32_t id) {
  const ordered_json root = ordered_json::parse(tokenizer_json, nullptr, false);
  if (!root.is_object() || !root.contains("added_tokens")) return "";
  for (const auto& token : root["added_tokens"]) {
    if (token.is_object() && token.value("id", -1) == id) return token.value("content", "");
  }
  return "";
}

class Writer {
 public:
  Writer(const TokenizerExport& what, const fs::path& directory) : what_(what), directory_(directory) {}

  TokenizerFilesWritten write() {
    const std::string& type = what_.tokenizer.type;
    if (type == "GPT2BPETokenizer") {
      write_gpt2();
    } else if (type == "HuggingFaceTokenizer") {
      write_tokenizer_json();
    } else if (type == "ByteTokenizer") {
      put("tokenizer.json", tokenizer_of_bytes().dump(2));
      put_config("PreTrainedTokenizerFast", {{"bos_token", kEndOfText}, {"eos_token", kEndOfText}});
    } else {
      written_.notes.push_back(fmt::format("no tokenizer was written: {} has no file that transformers reads", type));
    }
    if (const int32_t end = what_.vocabulary.eod; end >= 0) {
      // An empty prompt begins where a document has ended, as in training.
      const ordered_json config{{"bos_token_id", end}, {"eos_token_id", end}, {"pad_token_id", end}};
      put("generation_config.json", config.dump(2) + "\n");
    }
    return std::move(written_);
  }

 private:
  void write_gpt2() {
    const bool vocabulary = copy(what_.tokenizer.vocab_file, "vocab.json");
    const bool merges = copy(what_.tokenizer.merge_file, "merges.txt");
    if (!vocabulary || !merges) return;
    put_config(
        "GPT2Tokenizer",
        {{"add_prefix_space", false}, {"bos_token", kEndOfText}, {"eos_token", kEndOfText}, {"unk_token", kEndOfText}});
  }

  void write_tokenizer_json() {
    if (!copy(what_.tokenizer.model, "tokenizer.json")) return;
    const auto tokenizer = data::make_tokenizer(what_.tokenizer);
    const std::string text = read_text(what_.tokenizer.model);
    ordered_json special{{"eos_token", added_token(text, tokenizer->eod())}};
    if (tokenizer->bos() >= 0) special["bos_token"] = added_token(text, tokenizer->bos());
    put_config("PreTrainedTokenizerFast", special);
  }

  void put_config(const char* type, const ordered_json& keys) {
    ordered_json config{
        {"tokenizer_class", type}, {"model_max_length", what_.max_length}, {"clean_up_tokenization_spaces", false}};
    config.update(keys);
    put("tokenizer_config.json", config.dump(2) + "\n");
  }

  bool copy(const std::string& from, const char* name) {
    if (!fs::is_regular_file(from)) {
      written_.notes.push_back(fmt::format("the tokenizer's {} is not here: '{}'", name, from));
      return false;
    }
    put(name, read_text(from));
    return true;
  }

  void put(const char* name, std::string_view text) {
    File file = File::create_new(directory_ / name);
    file.write(text);
    file.sync();
    written_.names.emplace_back(name);
  }

  const TokenizerExport& what_;
  const fs::path& directory_;
  TokenizerFilesWritten written_;
};

}  // namespace

TokenizerFilesWritten write_hugging_face_tokenizer(const TokenizerExport& what, const fs::path& directory) {
  return Writer(what, directory).write();
}

config::Tokenizer find_hugging_face_tokenizer(const fs::path& directory, int64_t vocabulary) {
  const fs::path here = fs::absolute(directory);
  config::Tokenizer tokenizer{.type = "NullTokenizer", .vocab_size = vocabulary};
  if (fs::exists(here / "tokenizer.json")) {
    tokenizer.type = "HuggingFaceTokenizer";
    tokenizer.model = here / "tokenizer.json";
  } else if (fs::exists(here / "vocab.json") && fs::exists(here / "merges.txt")) {
    tokenizer.type = "GPT2BPETokenizer";
    tokenizer.vocab_file = here / "vocab.json";
    tokenizer.merge_file = here / "merges.txt";
  }
  return tokenizer;
}

}  // namespace megalith::checkpoint
