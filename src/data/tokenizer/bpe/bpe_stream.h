#pragma once

#include <optional>
#include <string>

#include "data/tokenizer/scan/open_piece.h"
#include "data/tokenizer/scan/special_strings.h"
#include "data/tokenizer/tokenizer.h"

namespace megalith::data {

class BpeTokenizer;

// Encodes text that comes in pieces. Holds what is not settled: the last few characters, or of a piece that is longer
// than the buffer what OpenPiece holds.
class PieceStream {
 public:
  PieceStream(const BpeTokenizer& tokenizer, size_t buffer_bytes) : tokenizer_(tokenizer), enough_(buffer_bytes) {}

  void add(std::string_view text, std::vector<int32_t>& ids);
  // The text ends here; the next one begins.
  void finish(std::vector<int32_t>& ids);

 private:
  static constexpr size_t kShortestOpen = 32;

  void run(bool last, std::vector<int32_t>& ids);
  bool run_open(bool last, std::vector<int32_t>& ids);

  const BpeTokenizer& tokenizer_;
  size_t enough_;
  std::string text_;
  std::optional<OpenPiece> open_;
};

// NFC of text that comes in pieces: normalises up to the last character that nothing before it can change.
class NfcStream {
 public:
  // The text that is certain; stays until the next call.
  std::string_view add(std::string_view text);
  std::string_view finish();

 private:
  std::string_view normalize(size_t bytes);

  std::string text_;
  std::string taken_;
  std::string storage_;
};

// BpeTokenizer's stream: special strings are looked for in the text as it comes, what lies between them is normalised
// and cut into pieces.
class BpeStream : public EncodeStream {
 public:
  BpeStream(const BpeTokenizer& tokenizer, const StreamOptions& options);

  void add(std::string_view piece, std::vector<int32_t>& ids) override;
  void finish(std::vector<int32_t>& ids) override;
  int64_t special_texts() const override { return special_texts_; }

 private:
  void search(bool last, std::vector<int32_t>& ids);
  void plain(std::string_view text, std::vector<int32_t>& ids);
  void end_of_text(std::vector<int32_t>& ids);

  const BpeTokenizer& tokenizer_;
  StreamOptions options_;
  PieceStream pieces_;
  std::optional<NfcStream> nfc_;
  size_t longest_special_ = 0;
  std::string unsearched_;
  int64_t searched_ = 0;     // bytes of the text before that
  size_t behind_match_ = 0;  // bytes of unsearched_ in which the last special string still lies
  int64_t special_texts_ = 0;
};

}  // namespace megalith::data
