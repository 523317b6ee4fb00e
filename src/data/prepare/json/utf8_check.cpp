#include "data/prepare/json/utf8_check.h"

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace megalith::data {

void Utf8Check::add(std::string_view text) {
  const char* at = text.data();
  const char* const end = at + text.size();
  while (at < end && valid_) {
    if (more_ == 0) {
      for (uint64_t word = 0; end - at >= static_cast<std::ptrdiff_t>(sizeof word); at += sizeof word) {
        std::memcpy(&word, at, sizeof word);
        if (word & 0x8080808080808080u) break;
      }
      if (at == end) break;
    }
    const auto byte = static_cast<unsigned char>(*at++);
    if (more_ > 0) {
      valid_ = byte >= low_ && byte <= high_;
      --more_;
      low_ = 0x80;
      high_ = 0xBF;
    } else if (byte >= 0x80) {
      character_ = added_ + (at - 1 - text.data());
      // Unicode 15, table 3-7.
      valid_ = byte >= 0xC2 && byte <= 0xF4;
      more_ = byte < 0xE0 ? 1 : byte < 0xF0 ? 2 : 3;
      low_ = byte == 0xE0 ? 0xA0 : byte == 0xF0 ? 0x90 : 0x80;
      high_ = byte == 0xED ? 0x9F : byte == 0xF4 ? 0x8F : 0xBF;
    }
  }
  added_ += static_cast<int64_t>(text.size());
}

}  // namespace megalith::data
