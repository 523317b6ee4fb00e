#pragma once

#include <string_view>

namespace megalith::data {

// Finds bytes that are not UTF-8 in text that comes in pieces, cut anywhere.
class Utf8Check {
 public:
  void add(std::string_view text);
  // Of a text that ends here.
  bool valid() const { return valid_ && more_ == 0; }

 private:
  bool valid_ = true;
  int more_ = 0;  // bytes that the character still needs
  unsigned char low_ = 0x80;
  unsigned char high_ = 0xBF;  // between which the next one has to be
};

}  // namespace megalith::data
