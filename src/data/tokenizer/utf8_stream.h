#pragma once

#include <string>
#include <string_view>

namespace megalith::data {

// Turns bytes that arrive in pieces, such as decoded tokens, into valid UTF-8: holds back a character that is not
// complete yet, and replaces each maximal ill-formed piece by U+FFFD (Unicode 15, section 3.9, as browsers do).
class Utf8Stream {
 public:
  // The complete characters so far.
  std::string add(std::string_view bytes);
  // What was held back, at the end of the stream.
  std::string finish();

 private:
  std::string held_;
};

// Each maximal ill-formed subsequence of `bytes` becomes U+FFFD (Unicode 15, section 3.9).
std::string replace_ill_formed_utf8(std::string_view bytes);

}  // namespace megalith::data
