#include "data/tokenizer/bpe_tokenizer.h"

#include <optional>

#include "core/error.h"
#include "data/tokenizer/bpe/bpe_stream.h"
#include "data/tokenizer/scan/nfc.h"
#include "data/tokenizer/scan/unicode_classes.h"

namespace megalith::data {

BpeTokenizer::BpeTokenizer(TokenizerFiles files)
    : identity_{.type = files.name,
                .grammar = std::string(grammar_name(files.grammar)),
                .reference = std::string(reference_name(files.vocabulary.reference)),
                .unicode_version = std::string(unicode_version()),
                .digest = files.digest},
      vocab_size_(files.vocab_size),
      eod_(files.eod),
      bos_(files.bos),
      grammar_(files.grammar),
      nfc_(files.nfc),
      specials_(files.specials),
      model_(std::make_shared<BpeModel>(std::move(files.vocabulary), files.source)) {
  for (const auto& [text, id] : files.specials) special_texts_.emplace(id, text);
}

BpeEncoder& BpeTokenizer::encoder_of_this_thread() const {
  thread_local std::optional<BpeEncoder> encoder;
  // The encoder keeps its model alive, so that the address of another one cannot be the same.
  if (!encoder || encoder->model() != model_) encoder.emplace(model_, grammar_);
  return *encoder;
}

void BpeTokenizer::encode(std::string_view text, std::vector<int32_t>& ids) const {
  BpeEncoder& encoder = encoder_of_this_thread();
  if (!nfc_) return encoder.encode(text, ids);
  std::string storage;
  encoder.encode(normalize_nfc(text, storage), ids);
}

int64_t BpeTokenizer::encode_with_specials(std::string_view text, std::vector<int32_t>& ids, SpecialText policy) const {
  int64_t found = 0;
  size_t begin = 0;  // of the text that is not encoded yet
  for (auto match = specials_.find(text, 0); match.id >= 0; match = specials_.find(text, match.end)) {
    ++found;
    if (policy == SpecialText::reject) {
      data_error("the text holds {} at byte {}", text.substr(match.begin, match.end - match.begin), match.begin);
    }
    if (policy == SpecialText::encode) {
      encode(text.substr(begin, match.begin - begin), ids);
      ids.push_back(match.id);
      begin = match.end;
    }
  }
  encode(text.substr(begin), ids);
  return found;
}

std::unique_ptr<EncodeStream> BpeTokenizer::open_stream(const StreamOptions& options) const {
  return std::make_unique<BpeStream>(*this, options);
}

std::string BpeTokenizer::decode(std::span<const int32_t> ids) const {
  std::string bytes;
  for (const int32_t id : ids) {
    if (id == eod_) continue;
    const auto special = special_texts_.find(id);
    if (special != special_texts_.end()) {
      bytes += special->second;
    } else if (id >= 0 && id < model_->tokens().size() && !model_->tokens().bytes(id).empty()) {
      bytes += model_->tokens().bytes(id);
    } else {
      user_error("id {} is not in the vocabulary of {} (0 to {})", id, name(), vocab_size() - 1);
    }
  }
  return bytes;
}

}  // namespace megalith::data
