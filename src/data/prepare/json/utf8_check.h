#pragma once

#include <cstdint>
#include <string_view>

namespace megalith::data {

// Finds bytes that are not UTF-8 in text that comes in pieces, cut anywhere.
class Utf8Check {
 public:
  void add(std::string_view text);
  // Of a text that ends here.
  bool valid() const { return valid_ && more_ == 0; }
  // Of a text that goes on.
  bool valid_so_far() const { return valid_; }
  // Where the first sequence that is not UTF-8 begins, if there is one: bytes since the first one added.
  int64_t bad_offset() const { return character_; }

 private:
  bool valid_ = true;
  int64_t added_ = 0;      // bytes before this piece
  int64_t character_ = 0;  // where the last one beyond ASCII begins
  int more_ = 0;           // bytes that the character still needs
  unsigned char low_ = 0x80;
  unsigned char high_ = 0xBF;  // between which the next one has to be
};

}  // namespace megalith::data
