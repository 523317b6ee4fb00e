#include "data/tokenizer/utf8_stream.h"

#include <array>
#include <utility>

#include "data/utf8.h"

namespace megalith::data {

namespace {
struct Piece {
  size_t bytes = 1;
  enum { valid, invalid, incomplete } state = valid;
};

// How many bytes a character beyond ASCII has that begins with this one; 0: none does.
size_t length_by_lead(unsigned char lead) {
  if (lead < 0xC2 || lead > 0xF4) return 0;
  return lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
}

// What the text, which is not empty, begins with: a character, or the longest beginning of one (what the Unicode
// standard calls a maximal subpart).
Piece first_piece(std::string_view text) {
  const CodePoint whole = decode_utf8(text.data(), text.data() + text.size());
  if (whole.valid) return {whole.length, Piece::valid};
  const size_t wanted = length_by_lead(static_cast<unsigned char>(text[0]));
  if (wanted == 0) return {1, Piece::invalid};
  // Bytes begin a character if it is one when filled up with 0x80, the lowest byte that may follow.
  std::array<char, 4> filled{text[0], '\x80', '\x80', '\x80'};
  for (size_t i = 1; i < text.size(); ++i) {
    filled[i] = text[i];
    if (!decode_utf8(filled.data(), filled.data() + wanted).valid) return {i, Piece::invalid};
  }
  return {text.size(), Piece::incomplete};
}
}  // namespace

std::string Utf8Stream::add(std::string_view bytes) {
  held_ += bytes;
  std::string text;
  std::string_view rest = held_;
  while (!rest.empty()) {
    const Piece next = first_piece(rest);
    if (next.state == Piece::incomplete) break;
    text += next.state == Piece::valid ? rest.substr(0, next.bytes) : kReplacementCharacter;
    rest.remove_prefix(next.bytes);
  }
  held_ = std::string(rest);
  return text;
}

std::string Utf8Stream::finish() {
  // An incomplete character is one ill-formed piece, however many of its bytes came.
  return std::exchange(held_, {}).empty() ? std::string() : std::string(kReplacementCharacter);
}

std::string replace_ill_formed_utf8(std::string_view bytes) {
  Utf8Stream stream;
  std::string text = stream.add(bytes);
  return text += stream.finish();
}

}  // namespace megalith::data
