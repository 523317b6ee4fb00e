#pragma once

#include <memory>
#include <string>
#include <unordered_map>

#include "data/tokenizer/bpe/bpe_encoder.h"
#include "data/tokenizer/scan/special_strings.h"
#include "data/tokenizer/tokenizer.h"
#include "data/tokenizer/tokenizer_files.h"

namespace megalith::data {

// Byte-level BPE of any of the formats. encode() may be called from many threads: each has an encoder of its own, with
// its cache of words, which lives until the thread ends or encodes with another tokenizer.
class BpeTokenizer : public Tokenizer {
 public:
  explicit BpeTokenizer(TokenizerFiles files);

  std::string_view name() const override { return identity_.type; }
  int64_t vocab_size() const override { return vocab_size_; }
  int32_t eod() const override { return eod_; }
  int32_t bos() const override { return bos_; }
  TokenizerIdentity identity() const override { return identity_; }
  using Tokenizer::encode;
  void encode(std::string_view text, std::vector<int32_t>& ids) const override;
  int64_t encode_with_specials(std::string_view text, std::vector<int32_t>& ids, SpecialText policy) const override;
  std::unique_ptr<EncodeStream> open_stream(const StreamOptions& options) const override;
  std::string decode(std::span<const int32_t> ids) const override;

  const BpeModel& model() const { return *model_; }
  Grammar grammar() const { return grammar_; }
  bool normalizes() const { return nfc_; }
  const SpecialStrings& specials() const { return specials_; }
  // Of the calling thread, until it encodes with another tokenizer.
  BpeEncoder& encoder_of_this_thread() const;

 private:
  TokenizerIdentity identity_;
  int64_t vocab_size_;
  int32_t eod_;
  int32_t bos_;
  Grammar grammar_;
  bool nfc_;
  SpecialStrings specials_;
  std::unordered_map<int32_t, std::string> special_texts_;
  std::shared_ptr<const BpeModel> model_;
};

}  // namespace megalith::data
