#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "data/prepare/batch_encoder.h"
#include "data/prepare/json/json_line_stream.h"
#include "data/prepare/json/utf8_check.h"
#include "data/tokenizer/utf8_stream.h"

namespace megalith::data {

// Judges a long JSON line that comes in parts.
class LongLine {
 public:
  LongLine(const FieldRules& rules, BadText bad_text, int64_t max_bytes, JsonLineStream::Receiver& receiver);

  void add(std::string_view bytes);
  struct Verdict {
    bool blank = false;  // nothing is on the line
    LineVerdict verdict = LineVerdict::document;
    JsonProblem problem;
  };
  Verdict finish();

 private:
  const FieldRules& rules_;
  int64_t max_bytes_;
  JsonLineStream json_;
  int64_t bytes_ = 0;
  bool blank_ = true;
  bool carriage_return_ = false;  // the last byte so far, which does not count at the end of a line
};

// Turns the parts of one long document, a JSON line or a whole text file, into tokens as they come: what BatchEncoder
// does with a document that is held whole, in memory that does not grow with it.
class LongDocument : private JsonLineStream::Receiver {
 public:
  LongDocument(const Tokenizer& tokenizer, const EncodeOptions& options, Cut cut, int64_t offset);

  EncodedBatch add(const RawBatch& part);

 private:
  // What one key gets.
  struct Text {
    std::unique_ptr<EncodeStream> stream;
    std::vector<int32_t> ids;  // that have not been handed on
    int64_t tokens = 0;
    int64_t bytes = 0;
    int64_t special_texts = 0;
    std::string refusal;  // not empty: why the text cannot be taken
    bool begins_again = false;
  };

  void forget(size_t path) override;
  void add_text(size_t path, std::string_view text) override;
  void begin(Text& text);
  void add(Text& text, std::string_view piece);
  void finish(Text& text);
  template <class Encode>
  void encode(Text& text, Encode&& encode);
  void add_to_file(std::string_view bytes);
  void end(EncodedBatch& out);
  std::optional<RejectedLine> judge(EncodedBatch& out, bool& is_document);
  void store(EncodedBatch& out);

  const Tokenizer& tokenizer_;
  const EncodeOptions& options_;
  FieldRules rules_;
  int64_t offset_;
  TokenType type_;
  std::vector<Text> texts_;  // per key
  std::optional<LongLine> line_;

  // Of a whole text file.
  int64_t file_bytes_ = 0;
  Utf8Check utf8_;
  int64_t lines_before_bad_ = 0;  // and as long as nothing is bad, lines so far
  Utf8Stream repaired_;           // where what is no UTF-8 is replaced
};

}  // namespace megalith::data
