#include "data/prepare/prepare_config.h"

#include <array>
#include <string_view>
#include <utility>

namespace megalith::data {

namespace {
using Json = nlohmann::ordered_json;

template <class Choice, size_t N>
using Names = std::array<std::pair<Choice, std::string_view>, N>;

constexpr Names<SpecialText, 3> kSpecialText = {
    {{SpecialText::plain, "plain"}, {SpecialText::encode, "encode"}, {SpecialText::reject, "reject"}}};
constexpr Names<OnError, 2> kOnError = {{{OnError::fail, "fail"}, {OnError::skip, "skip"}}};
constexpr Names<BadText, 2> kBadText = {{{BadText::reject, "reject"}, {BadText::replace, "replace"}}};
constexpr Names<TextDocuments, 2> kTextDocuments = {
    {{TextDocuments::whole_file, "whole_file"}, {TextDocuments::blank_lines, "blank_lines"}}};
constexpr Names<InputFormat, 4> kFormat = {{{InputFormat::by_name, "by_name"},
                                            {InputFormat::text, "text"},
                                            {InputFormat::json_lines, "json_lines"},
                                            {InputFormat::parquet, "parquet"}}};

template <class Choice, size_t N>
std::string_view write(const Names<Choice, N>& names, Choice choice) {
  for (const auto& [value, name] : names) {
    if (value == choice) return name;
  }
  return "?";
}

template <class Choice, size_t N>
Choice read(const Names<Choice, N>& names, const Json& json) {
  for (const auto& [value, name] : names) {
    if (json == name) return value;
  }
  throw nlohmann::json::other_error::create(501, "unknown choice " + json.dump(), &json);
}
}  // namespace

Json tokenizer_to_json(const Tokenizer& tokenizer) {
  return tokenizer_to_json(recorded(tokenizer));
}

Json tokenizer_to_json(const RecordedTokenizer& tokenizer) {
  const TokenizerIdentity& identity = tokenizer.identity;
  return {{"type", identity.type},
          {"grammar", identity.grammar},
          {"reference", identity.reference},
          {"unicode_version", identity.unicode_version},
          {"digest", identity.digest},
          {"vocab_size", tokenizer.vocab_size},
          {"eod", tokenizer.eod}};
}

Json config_to_json(const Tokenizer& tokenizer, const PrepareOptions& options) {
  const EncodeOptions& encode = options.encode;
  Json keep = Json::array();
  for (const FieldFilter& filter : encode.keep) keep.push_back({{"path", filter.path}, {"values", filter.values}});
  return {{"tokenizer", tokenizer_to_json(tokenizer)},
          {"special_text", write(kSpecialText, encode.special_text)},
          {"append_eod", encode.append_eod},
          {"bos", encode.bos ? Json(*encode.bos) : Json(nullptr)},
          {"json_keys", encode.json_keys},
          {"keep", keep},
          {"on_error", write(kOnError, encode.on_error)},
          {"bad_text", write(kBadText, encode.bad_text)},
          {"max_document_bytes", encode.max_document_bytes},
          {"text_documents", write(kTextDocuments, options.text_documents)},
          {"format", write(kFormat, options.format)}};
}

PrepareOptions options_from_json(const Json& config) {
  PrepareOptions options;
  EncodeOptions& encode = options.encode;
  encode.special_text = read(kSpecialText, config.at("special_text"));
  encode.look_for_special_text = encode.special_text != SpecialText::plain;
  encode.append_eod = config.at("append_eod").get<bool>();
  if (const Json& bos = config.at("bos"); !bos.is_null()) encode.bos = bos.get<int32_t>();
  encode.json_keys = config.at("json_keys").get<std::vector<std::string>>();
  for (const Json& filter : config.at("keep")) {
    encode.keep.push_back({filter.at("path").get<std::string>(), filter.at("values").get<std::vector<std::string>>()});
  }
  encode.on_error = read(kOnError, config.at("on_error"));
  encode.bad_text = read(kBadText, config.at("bad_text"));
  encode.max_document_bytes = config.at("max_document_bytes").get<int64_t>();
  options.text_documents = read(kTextDocuments, config.at("text_documents"));
  options.format = read(kFormat, config.at("format"));
  return options;
}

Json input_to_json(const InputFile& file) {
  return {{"path", file.path.string()}, {"bytes", file.size}, {"modified_ns", file.modified_ns}};
}

InputFile input_from_json(const Json& file) {
  return {.path = file.at("path").get<std::string>(),
          .size = file.at("bytes").get<int64_t>(),
          .modified_ns = file.at("modified_ns").get<int64_t>()};
}

}  // namespace megalith::data
