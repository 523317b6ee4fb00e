#include "data/tokenizer/byte_alphabet.h"

#include <array>
#include <cstdint>

#include "data/utf8.h"

namespace megalith::data {

namespace {
constexpr uint32_t kCodes = 0x144;

constexpr bool stands_for_itself(uint32_t byte) {
  return (byte >= 33 && byte <= 126) || (byte >= 161 && byte <= 172) || byte >= 174;
}

constexpr std::array<uint16_t, 256> make_code_of() {
  std::array<uint16_t, 256> codes{};
  uint16_t next = 0x100;
  for (uint32_t byte = 0; byte < 256; ++byte) {
    codes[byte] = stands_for_itself(byte) ? static_cast<uint16_t>(byte) : next++;
  }
  return codes;
}
constexpr std::array<uint16_t, 256> kCodeOf = make_code_of();

constexpr std::array<int16_t, kCodes> make_byte_of() {
  std::array<int16_t, kCodes> bytes{};
  for (int16_t& byte : bytes) byte = -1;
  for (int16_t byte = 0; byte < 256; ++byte) bytes[kCodeOf[static_cast<size_t>(byte)]] = byte;
  return bytes;
}
constexpr std::array<int16_t, kCodes> kByteOf = make_byte_of();
}  // namespace

std::string to_byte_alphabet(std::string_view bytes) {
  std::string text;
  for (const char c : bytes) append_utf8(text, kCodeOf[static_cast<unsigned char>(c)]);
  return text;
}

std::optional<std::string> from_byte_alphabet(std::string_view text) {
  std::string bytes;
  const char* const end = text.data() + text.size();
  for (const char* at = text.data(); at < end;) {
    const CodePoint point = decode_utf8(at, end);
    if (!point.valid || point.code >= kCodes || kByteOf[point.code] < 0) return std::nullopt;
    bytes.push_back(static_cast<char>(kByteOf[point.code]));
    at += point.length;
  }
  return bytes;
}

}  // namespace megalith::data
