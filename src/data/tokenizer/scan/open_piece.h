#pragma once

#include <string_view>

#include "data/tokenizer/bpe/run_store.h"
#include "data/tokenizer/bpe/stream_merger.h"
#include "data/tokenizer/scan/grammar.h"
#include "data/tokenizer/scan/scanner_rules.h"

namespace megalith::data {

// A piece whose end is not in sight: white space, a word, digits or symbols without end. Follows the rules of
// scanner_rules.h one character at a time. Where the rules go back to an earlier character (the last newline of white
// space; in o200k the last letter without case of a word that ends in capitals), what came behind it waits.
class OpenPiece {
 public:
  // The piece begins at `text`, which holds at least its first two characters.
  OpenPiece(Grammar grammar, std::string_view text, size_t kept);

  // How much of `text` was used; what is left belongs to a later call or, once the piece has ended, behind waiting().
  // `last`: nothing comes behind this text.
  size_t add(std::string_view text, bool last, BpeEncoder& encoder, std::vector<int32_t>& ids);
  bool ended() const { return ended_; }
  // The text between the end of the piece and what add() did not use.
  RunStore& waiting() { return waiting_; }

 private:
  enum class Kind {
    run,   // one character set
    tail,  // newlines (and slashes) behind symbols
    white,
    upper,  // o200k: capitals and letters without case
    lower,  // o200k: behind the first small letter
  };

  void begin_gpt2(const char* text, const char* end);
  void begin_cl100k(const char* text, const char* end);
  void begin_o200k(const char* text, const char* end);
  void begin_symbols_or_white(const char* text, const char* end);
  // The rune at `text` if it belongs here; false if the piece cannot go on with it.
  bool take(std::string_view character, ClassSet set);
  bool take_white(std::string_view character, ClassSet set);
  bool take_upper(std::string_view character, ClassSet set);
  void commit_waiting();
  void end_at_text_end();

  Grammar grammar_;
  Kind kind_ = Kind::white;
  ClassSet set_ = kSpaces;
  size_t prefix_ = 0;    // bytes before the run, which belong to the piece whatever they are
  bool marked_ = false;  // the piece may end where waiting_ begins
  bool ended_ = false;
  std::string last_white_;  // as long as no newline has come
  RunStore waiting_;
  StreamMerger merger_;
};

}  // namespace megalith::data
