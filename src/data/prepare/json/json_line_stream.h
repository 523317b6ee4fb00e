#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "data/prepare/json/json_fields.h"
#include "data/prepare/json/json_string_decoder.h"
#include "data/prepare/json/json_text.h"
#include "data/prepare/json/utf8_check.h"
#include "data/tokenizer/utf8_stream.h"

namespace megalith::data {

// Reads one JSON object of any length that comes in pieces, in memory that does not grow with it: what JsonFields does
// with a line that is held whole. Every verdict is the same, and so is what is not looked at: this follows the two
// passes of simdjson 3 (structure, then a walk along the paths), one byte at a time.
class JsonLineStream {
 public:
  // What becomes of the strings under the paths.
  class Receiver {
   public:
    virtual ~Receiver() = default;
    // Of equal keys the last one counts: what the path had so far is void.
    virtual void forget(size_t path) = 0;
    virtual void add_text(size_t path, std::string_view text) = 0;
  };

  // Of values() the first `kept_bytes` are kept.
  JsonLineStream(const std::vector<std::string>& paths, BadText bad_text, size_t kept_bytes, Receiver& receiver);

  void add(std::string_view bytes);
  // At the end of the line.
  std::optional<JsonProblem> finish();
  // In the order of the paths; a text is cut off behind `kept_bytes`.
  std::vector<JsonValue> values() const;

 private:
  // What the next token means.
  enum class Expect { root, first_field, key, colon, value, skip_string, skip_container, next_field, nothing };
  enum class Use { none, key, value };  // of the string or scalar that is being read
  struct Value {
    std::string_view type;
    std::string text;
  };

  void scan(std::string_view text);
  size_t scan_string(std::string_view text);
  void end_string();
  void take_text();
  void begin_token(char c);
  void end_token();
  void walk(char c);
  void walk_colon(char c);
  void walk_value(char c);
  void skip_value(char c);
  void leave_object();
  void keep(std::string_view bytes);
  void forget(const JsonPathNode& node);
  void fail(JsonProblem problem);
  Value& value_of(int path) { return values_[static_cast<size_t>(path)]; }

  JsonPathNode root_;
  BadText bad_text_;
  size_t kept_bytes_;
  size_t longest_key_ = 0;
  Receiver& receiver_;
  std::vector<Value> values_;

  // The bytes.
  Utf8Check utf8_;
  Utf8Stream replaced_;
  bool in_string_ = false;
  bool escaped_ = false;                 // the character before was a backslash that counts
  bool in_scalar_ = false;               // the character before belongs to a number, a word or rubbish
  bool control_ = false;                 // a raw control character was in a string
  static constexpr char kNoToken = ' ';  // none begins with it
  char first_token_ = kNoToken;
  char last_token_ = kNoToken;

  // The walk.
  Expect expect_ = Expect::root;
  std::vector<const JsonPathNode*> objects_;  // that are open and on a path
  int64_t skip_depth_ = 0;
  const JsonPathNode* field_ = nullptr;  // of the value that comes; null: no path goes there
  Use use_ = Use::none;
  int value_path_ = -1;
  JsonStringDecoder decoder_;
  std::string decoded_;
  std::string key_;
  bool key_good_ = true;
  std::optional<JsonProblem> problem_;  // the first of the walk
};

}  // namespace megalith::data
