#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "config/run_config.h"
#include "data/order/dataset.h"

namespace megalith::data {

// What a dataset records of the tokenizer that made it: two with the same identity give the same ids.
struct TokenizerIdentity {
  std::string type;             // as in model.tokenizer.type
  std::string grammar;          // how text is cut: gpt2, cl100k, ...
  std::string reference;        // whose merging: tiktoken or merge-list
  std::string unicode_version;  // of the tables behind the grammar
  std::string digest;           // of the tokenizer's files

  bool operator==(const TokenizerIdentity&) const = default;
};

// What a string such as <|endoftext|> in a text becomes.
enum class SpecialText {
  plain,   // characters like any others
  encode,  // its id
  reject,  // a data error
};

// How a text that comes in pieces is encoded.
struct StreamOptions {
  bool look_for_special_text = false;
  SpecialText special_text = SpecialText::plain;
  size_t buffer_bytes = size_t{64} << 10;  // text that gathers before it is encoded
};

// Encodes one text that comes in pieces, cut anywhere: the ids are those of the whole text.
class EncodeStream {
 public:
  virtual ~EncodeStream() = default;
  // Appends the ids that are certain by now.
  virtual void add(std::string_view piece, std::vector<int32_t>& ids) = 0;
  // The rest. Nothing is added afterwards.
  virtual void finish(std::vector<int32_t>& ids) = 0;
  // How many special strings were found, if they were looked for.
  virtual int64_t special_texts() const { return 0; }
};

class Tokenizer {
 public:
  virtual ~Tokenizer() = default;

  virtual std::string_view name() const = 0;
  virtual int64_t vocab_size() const = 0;
  // The id that ends a document; never the result of encoding text.
  virtual int32_t eod() const = 0;
  // The id that begins a document where the model wants one; -1: there is none.
  virtual int32_t bos() const { return -1; }
  virtual TokenizerIdentity identity() const { return {.type = std::string(name())}; }

  // Appends the ids of `text` to `ids`; special strings are plain text. May be called from several threads at once.
  virtual void encode(std::string_view text, std::vector<int32_t>& ids) const = 0;
  // The bytes of the ids; eod gives none. A piece of a stream may end within a character: see Utf8Stream. User error
  // for an id outside of the vocabulary.
  virtual std::string decode(std::span<const int32_t> ids) const = 0;
  // As encode, and looks for special strings. Returns how many there are.
  virtual int64_t encode_with_specials(std::string_view text, std::vector<int32_t>& ids, SpecialText policy) const;
  // As both of these, for a text too long to be held; it must not outlive the tokenizer. This one holds the text all
  // the same.
  virtual std::unique_ptr<EncodeStream> open_stream(const StreamOptions& options) const;

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
  std::unique_ptr<EncodeStream> open_stream(const StreamOptions& options) const override;
  std::string decode(std::span<const int32_t> ids) const override;
};

// Reads the tokenizer's files. User error if the type is not supported or a file is not named; data error if a file is
// not what it should be.
std::unique_ptr<Tokenizer> make_tokenizer(const config::Tokenizer& config);

// Whether a file is named, or none is needed.
bool names_files(const config::Tokenizer& config);
// Whether all files that the tokenizer needs are named and here.
bool can_make_tokenizer(const config::Tokenizer& config);

// What a model must know to train on tokens that are already there, for which the tokenizer itself is not needed: what
// its files say if they are there, else what the type implies; at least `tokenizer.vocab_size`, which alone decides
// where files are named that are still to be made.
Vocabulary vocabulary_of(const config::Tokenizer& config);

}  // namespace megalith::data
