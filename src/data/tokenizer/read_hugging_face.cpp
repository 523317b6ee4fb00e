#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <unordered_set>

#include "core/error.h"
#include "data/tokenizer/bpe/merge_list.h"
#include "data/tokenizer/byte_alphabet.h"
#include "data/tokenizer/tokenizer_files.h"

namespace megalith::data {

namespace {
using Json = nlohmann::json;

class Reader {
 public:
  Reader(const Json& root, TokenizerFiles& files) : root_(root), files_(files), source_(files.source) {}

  void read(const std::string& eod) {
    if (!root_.is_object()) data_error("{}: not a JSON object", source_);
    read_normalizer(part("normalizer"));
    read_pre_tokenizer(part("pre_tokenizer"));
    read_added_tokens(part("added_tokens"));
    read_model(part("model"));
    choose_eod(eod);
  }

 private:
  static const Json& member(const Json& object, const char* name) {
    static const Json null;
    const auto at = object.find(name);
    return at == object.end() ? null : *at;
  }
  const Json& part(const char* name) const { return member(root_, name); }

  std::string type_of(const Json& object, const char* what) const {
    if (!object.is_object() || !member(object, "type").is_string()) data_error("{}: {} has no type", source_, what);
    return member(object, "type").get<std::string>();
  }
  bool flag(const Json& object, const char* name, bool otherwise) const {
    const Json& value = member(object, name);
    if (value.is_null()) return otherwise;
    if (!value.is_boolean()) data_error("{}: {} is not true or false", source_, name);
    return value.get<bool>();
  }

  void read_normalizer(const Json& normalizer) {
    if (normalizer.is_null()) return;
    const std::string type = type_of(normalizer, "normalizer");
    const Json& steps = member(normalizer, "normalizers");
    if (type == "Sequence" && steps.is_array() && steps.size() <= 1) {
      if (!steps.empty()) read_normalizer(steps[0]);
      return;
    }
    if (type != "NFC") data_error("{}: normalizer {} is not supported; NFC is", source_, type);
    files_.nfc = true;
  }

  void read_pre_tokenizer(const Json& pre_tokenizer) {
    const std::string type = type_of(pre_tokenizer, "pre_tokenizer");
    if (type == "ByteLevel") {
      check_byte_level(pre_tokenizer, true);
      files_.grammar = Grammar::gpt2;
      return;
    }
    const Json& steps = member(pre_tokenizer, "pretokenizers");
    if (type != "Sequence" || !steps.is_array() || steps.size() != 2 || type_of(steps[0], "pre_tokenizer") != "Split" ||
        type_of(steps[1], "pre_tokenizer") != "ByteLevel") {
      data_error("{}: pre_tokenizer {} is not supported; ByteLevel, and Sequence of Split and ByteLevel, are", source_,
                 type);
    }
    check_byte_level(steps[1], false);
    files_.grammar = read_split(steps[0]);
  }

  void check_byte_level(const Json& byte_level, bool regex) const {
    // The first GPT-2 file has no `use_regex`, which means true.
    if (flag(byte_level, "use_regex", true) != regex) {
      data_error("{}: pre_tokenizer ByteLevel with use_regex {} is not supported here", source_, !regex);
    }
    if (flag(byte_level, "add_prefix_space", true)) {
      data_error("{}: pre_tokenizer ByteLevel with add_prefix_space is not supported", source_);
    }
  }

  Grammar read_split(const Json& split) const {
    const Json& behavior = member(split, "behavior");
    const Json& pattern = member(split, "pattern");
    if (behavior != "Isolated" || flag(split, "invert", false)) {
      data_error("{}: pre_tokenizer Split is supported with behavior Isolated only, not {}{}", source_,
                 behavior.dump(-1, ' ', false, Json::error_handler_t::replace),
                 flag(split, "invert", false) ? ", inverted" : "");
    }
    if (!pattern.is_object() || !member(pattern, "Regex").is_string()) {
      data_error("{}: pre_tokenizer Split without a Regex is not supported", source_);
    }
    const auto& regex = member(pattern, "Regex").get_ref<const std::string&>();
    const std::optional<Grammar> grammar = grammar_of_pattern(regex);
    if (!grammar) data_error("{}: the pattern \"{}\" is not one of those that are supported", source_, regex);
    return *grammar;
  }

  void read_added_tokens(const Json& added) {
    if (added.is_null()) return;
    if (!added.is_array()) data_error("{}: added_tokens is not an array", source_);
    for (const Json& token : added) {
      const Json& content = token.is_object() ? member(token, "content") : token;
      if (!token.is_object() || !content.is_string() || !member(token, "id").is_number_integer() ||
          content.get_ref<const std::string&>().empty()) {
        data_error("{}: an added token has no content or no id", source_);
      }
      const auto& text = content.get_ref<const std::string&>();
      for (const char* option : {"lstrip", "rstrip", "single_word"}) {
        if (flag(token, option, false))
          data_error("{}: added token {} with {} is not supported", source_, text, option);
      }
      if (files_.nfc && flag(token, "normalized", false)) {
        data_error("{}: added token {}, to be found after NFC, is not supported", source_, text);
      }
      const auto id = member(token, "id").get<int64_t>();
      if (id < 0 || id > kLargestId) data_error("{}: id {} of added token {} is out of range", source_, id, text);
      if (!added_.insert(text).second) data_error("{}: added token {} is there twice", source_, text);
      files_.specials.emplace_back(text, static_cast<int32_t>(id));
      files_.vocab_size = std::max(files_.vocab_size, id + 1);
    }
  }

  void check_model(const Json& model) const {
    if (!model.is_object()) data_error("{}: no model", source_);
    const Json& type = member(model, "type");
    // Very old files leave the type out.
    const bool other = model.contains("unk_id") || model.contains("max_input_chars_per_word");
    if (type.is_null() ? other : type != "BPE") data_error("{}: the model is not BPE", source_);
    if (flag(model, "byte_fallback", false)) {
      data_error("{}: byte_fallback is SentencePiece's way, which is not supported; byte-level BPE is", source_);
    }
    const Json& dropout = member(model, "dropout");
    if (!dropout.is_null() && dropout != 0.0) data_error("{}: a model with dropout is not supported", source_);
    for (const char* name : {"continuing_subword_prefix", "end_of_word_suffix"}) {
      const Json& value = member(model, name);
      if (!value.is_null() && value != "") data_error("{}: a model with {} is not supported", source_, name);
    }
  }

  void read_model(const Json& model) {
    check_model(model);
    const Json& vocab = member(model, "vocab");
    if (!vocab.is_object()) data_error("{}: model.vocab is not an object of tokens and ids", source_);
    std::vector<std::string>& tokens = files_.vocabulary.tokens;
    for (const auto& [token, id] : vocab.items()) {
      if (!id.is_number_integer()) data_error("{}: the id of \"{}\" is not an integer", source_, token);
      const auto number = id.get<int64_t>();
      if (added_.contains(token)) {
        check_same_id(token, number);
        continue;
      }
      auto bytes = from_byte_alphabet(token);
      if (!bytes) data_error("{}: token \"{}\" is not written in the byte alphabet", source_, token);
      files::place_token(tokens, number, std::move(*bytes), vocab.size(), source_);
    }
    files_.vocab_size = std::max<int64_t>(files_.vocab_size, std::ssize(tokens));
    for (const auto& [text, id] : files_.specials) {
      const auto at = static_cast<size_t>(id);
      if (at < tokens.size() && !tokens[at].empty()) {
        data_error("{}: id {} is both {} and \"{}\"", source_, id, text, to_byte_alphabet(tokens[at]));
      }
    }
    files_.vocabulary.whole_pieces = flag(model, "ignore_merges", false);
    read_merges(member(model, "merges"));
  }

  void check_same_id(const std::string& token, int64_t id) const {
    for (const auto& [text, added_id] : files_.specials) {
      if (text == token && added_id != id) data_error("{}: {} has the ids {} and {}", source_, token, added_id, id);
    }
  }

  void read_merges(const Json& merges) {
    if (!merges.is_array()) data_error("{}: model.merges is not an array", source_);
    MergeList list(files_.vocabulary.tokens, source_);
    for (size_t i = 0; i < merges.size(); ++i) {
      const std::string place = fmt::format("merge {}", i + 1);
      const Json& merge = merges[i];
      if (merge.is_string()) {
        list.add(merge.get_ref<const std::string&>(), place);
      } else if (merge.is_array() && merge.size() == 2 && merge[0].is_string() && merge[1].is_string()) {
        list.add(merge[0].get_ref<const std::string&>(), merge[1].get_ref<const std::string&>(), place);
      } else {
        data_error("{}: {} is not two tokens", source_, place);
      }
    }
    files_.vocabulary.merges = list.take();
  }

  void choose_eod(const std::string& wanted) {
    const std::vector<std::string> names =
        wanted.empty() ? std::vector<std::string>{"<|end_of_text|>", "<|endoftext|>"} : std::vector{wanted};
    for (const auto& [text, id] : files_.specials) {
      if (text == "<|begin_of_text|>") files_.bos = id;
    }
    for (const std::string& name : names) {
      for (const auto& [text, id] : files_.specials) {
        if (text == name) {
          files_.eod = id;
          return;
        }
      }
    }
    user_error(
        "{}: no token {} to end documents with; name one of its added tokens with --eod-token "
        "(model.tokenizer.eod_token)",
        source_, fmt::join(names, " or "));
  }

  static constexpr int64_t kLargestId = int64_t{1} << 24;

  const Json& root_;
  TokenizerFiles& files_;
  const std::string& source_;
  std::unordered_set<std::string> added_;
};
}  // namespace

TokenizerFiles read_hugging_face(const std::filesystem::path& path, const std::string& eod) {
  const std::filesystem::path file = std::filesystem::is_directory(path) ? path / "tokenizer.json" : path;
  const std::string content = files::read(file);
  TokenizerFiles files;
  files.name = "HuggingFaceTokenizer";
  files.source = file.string();
  files.digest = files::digest_of({content});
  const Json root = Json::parse(content, nullptr, false);
  if (root.is_discarded()) data_error("{}: not JSON", files.source);
  Reader(root, files).read(eod);
  return files;
}

}  // namespace megalith::data
