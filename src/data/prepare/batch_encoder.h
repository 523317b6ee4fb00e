#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "data/files/token_type.h"
#include "data/prepare/json/document_fields.h"
#include "data/prepare/read/batch_reader.h"
#include "data/tokenizer/tokenizer.h"

namespace megalith::data {

struct EncodeOptions {
  std::vector<std::string> json_keys = {"text"};
  std::vector<FieldFilter> keep;
  BadText bad_text = BadText::reject;
  OnError on_error = OnError::fail;
  int64_t max_document_bytes = int64_t{4} << 30;
  int64_t max_document_tokens = std::numeric_limits<int32_t>::max();  // the index counts a sequence in 32 bits
  bool append_eod = false;
  std::optional<int32_t> bos;  // put before every document
  // Looking for special strings costs a little: not asked for, they are plain text and not counted.
  bool look_for_special_text = false;
  SpecialText special_text = SpecialText::plain;
  size_t stream_buffer_bytes = StreamOptions{}.buffer_bytes;  // for the texts of long documents
};

// A line that gave no document.
struct RejectedLine {
  BadLine kind = BadLine::not_json;
  int64_t line = 0;    // within the batch, from 1
  int64_t offset = 0;  // of its first byte in the text of the file
  std::string detail;
};

// The tokens of a batch as they are stored.
struct EncodedBatch {
  struct Key {
    std::vector<std::byte> tokens;
    std::vector<int32_t> lengths;  // of each document in tokens; 0 for an empty one
    int64_t token_count = 0;       // of whole documents
    int64_t empty_documents = 0;
    bool begins_again = false;  // tokens of the open document that came before are void
  };
  // Tokens of a long document come in several batches: it begins with one, stays open, and ends with one that has its
  // length, or with one that says that it is none after all.
  bool begins_document = false;
  bool drops_document = false;
  std::vector<Key> keys;
  std::vector<RejectedLine> bad;  // one at most with OnError::fail: the batch ends there
  int64_t lines = 0;
  int64_t documents = 0;
  int64_t filtered = 0;
  int64_t text_bytes = 0;     // what the tokenizer saw
  int64_t special_texts = 0;  // strings such as <|endoftext|> in the texts

  int64_t bytes() const;  // of memory, about
};

// Ids as they are stored. Internal error for one outside of the vocabulary.
std::vector<std::byte> stored_tokens(const std::vector<int32_t>& ids, TokenType type, int64_t vocab_size);

// The other way round.
std::vector<int32_t> ids_of(const EncodedBatch::Key& key);

// Turns batches of whole documents into tokens; one for each thread.
class BatchEncoder {
 public:
  BatchEncoder(const Tokenizer& tokenizer, const EncodeOptions& options);

  EncodedBatch encode(const RawBatch& batch, Cut cut);

 private:
  void encode_lines(const RawBatch& batch, EncodedBatch& out);
  void encode_paragraphs(const RawBatch& batch, EncodedBatch& out);
  // False if a document cannot be taken; `bad` then says why.
  bool add_document(EncodedBatch& out, std::optional<std::string_view> text, RejectedLine rejected);
  // Text that is not from JSON: false if it is no UTF-8 and may not be repaired, with the place of the first bad byte.
  bool make_valid(std::string_view& text, RejectedLine& rejected);
  int64_t encode_text(std::string_view text, std::vector<int32_t>& ids) const;
  void store(EncodedBatch& out);

  const Tokenizer& tokenizer_;
  EncodeOptions options_;
  TokenType type_;
  std::optional<DocumentFields> fields_;   // made when the first JSON comes
  std::vector<std::vector<int32_t>> ids_;  // per key
  std::vector<size_t> begins_;             // of the document in ids_, per key
  std::string repaired_;                   // a text with U+FFFD for what was no UTF-8
};

}  // namespace megalith::data
