#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace megalith::data {

// Resolves the escapes of a JSON string that comes in pieces.
class JsonStringDecoder {
 public:
  // `replace`: a surrogate without its other half becomes U+FFFD; it is an error otherwise.
  void begin(bool replace);
  // Bytes without a backslash.
  void add(std::string_view bytes, std::string& text);
  // The character behind a backslash.
  void add_escape(char c, std::string& text);
  // False if there was a bad escape. What was decoded then has no meaning.
  bool end(std::string& text);

 private:
  void add_code(uint32_t code, std::string& text);
  void end_lone_surrogate(std::string& text);

  bool replace_ = false;
  bool good_ = true;
  int digits_ = -1;  // of a \u that have come; -1: within none
  uint32_t code_ = 0;
  uint32_t high_ = 0;  // first half of a pair; 0: none
};

}  // namespace megalith::data
