#include "data/prepare/json/json_string_decoder.h"

#include <algorithm>

#include "data/prepare/json/json_text.h"
#include "data/utf8.h"

namespace megalith::data {

void JsonStringDecoder::begin(bool replace) {
  *this = {};
  replace_ = replace;
}

void JsonStringDecoder::end_lone_surrogate(std::string& text) {
  if (high_ == 0) return;
  high_ = 0;
  good_ = good_ && replace_;
  text += kReplacementCharacter;
}

void JsonStringDecoder::add_code(uint32_t code, std::string& text) {
  const bool low = code >= 0xDC00 && code < 0xE000;
  if (low && high_ != 0) {
    append_utf8(text, 0x10000 + ((high_ - 0xD800) << 10) + (code - 0xDC00));
    high_ = 0;
    return;
  }
  end_lone_surrogate(text);
  if (code >= 0xD800 && code < 0xDC00) {
    high_ = code;
  } else if (low) {
    good_ = good_ && replace_;
    text += kReplacementCharacter;
  } else {
    append_utf8(text, code);
  }
}

void JsonStringDecoder::add(std::string_view bytes, std::string& text) {
  while (digits_ >= 0 && !bytes.empty()) {
    const int digit = hex_digit(bytes[0]);
    bytes.remove_prefix(1);
    good_ = good_ && digit >= 0;
    code_ = code_ * 16 + static_cast<uint32_t>(std::max(digit, 0));
    if (++digits_ < 4) continue;
    digits_ = -1;
    add_code(code_, text);
  }
  if (bytes.empty()) return;
  end_lone_surrogate(text);
  text += bytes;
}

void JsonStringDecoder::add_escape(char c, std::string& text) {
  if (digits_ >= 0) good_ = false;
  if (c == 'u') {
    digits_ = 0;
    code_ = 0;
    return;
  }
  const auto plain = simple_json_escape(c);
  good_ = good_ && plain;
  end_lone_surrogate(text);
  text += plain.value_or(' ');
}

bool JsonStringDecoder::end(std::string& text) {
  end_lone_surrogate(text);
  return good_ && digits_ < 0;
}

}  // namespace megalith::data
