#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "config/run_config.h"
#include "data/dataset.h"

namespace megalith::data {

class Tokenizer {
 public:
  virtual ~Tokenizer() = default;

  virtual std::string_view name() const = 0;
  virtual int64_t vocab_size() const = 0;
  // The id that ends a document; never the result of encoding text.
  virtual int32_t eod() const = 0;

  // Appends the ids of `text` to `ids`.
  virtual void encode(std::string_view text, std::vector<int32_t>& ids) const = 0;
  // The bytes of the ids; eod gives none. A piece of a stream may end within a character: see Utf8Stream. User error
  // for an id outside of the vocabulary.
  virtual std::string decode(std::span<const int32_t> ids) const = 0;

  std::vector<int32_t> encode(std::string_view text) const;
};

// Ids 0 to 255 are bytes, 256 is eod. Needs no files and encodes anything.
class ByteTokenizer : public Tokenizer {
 public:
  static constexpr int32_t kEod = 256;

  std::string_view name() const override { return "ByteTokenizer"; }
  int64_t vocab_size() const override { return kEod + 1; }
  int32_t eod() const override { return kEod; }
  using Tokenizer::encode;
  void encode(std::string_view text, std::vector<int32_t>& ids) const override;
  std::string decode(std::span<const int32_t> ids) const override;
};

// User error if this build cannot encode with it.
std::unique_ptr<Tokenizer> make_tokenizer(const config::Tokenizer& config);

// What a model must know to train on tokens that are already there, for which the tokenizer itself is not needed:
// `tokenizer.vocab_size` if given, else what the type implies.
Vocabulary vocabulary_of(const config::Tokenizer& config);

}  // namespace megalith::data
