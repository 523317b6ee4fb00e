#include "observe/tfrecord.h"

#include <array>
#include <bit>

namespace megalith::observe {

namespace {
constexpr std::array<uint32_t, 256> make_table() {
  std::array<uint32_t, 256> table{};
  for (uint32_t i = 0; i < 256; ++i) {
    uint32_t value = i;
    for (int bit = 0; bit < 8; ++bit)
      value = value >> 1 ^ ((value & 1u) != 0 ? 0x82f63b78u : 0u);  // Castagnoli, reflected
    table[i] = value;
  }
  return table;
}

constexpr std::array<uint32_t, 256> kTable = make_table();

enum WireType : uint32_t { kVarint = 0, kFixed64 = 1, kLengthDelimited = 2, kFixed32 = 5 };

std::string little_endian(uint64_t value, size_t bytes) {
  std::string text;
  for (size_t i = 0; i < bytes; ++i) text += static_cast<char>(value >> (8 * i) & 0xff);
  return text;
}
}  // namespace

uint32_t crc32c(std::string_view bytes) {
  uint32_t crc = ~0u;
  for (const char c : bytes) crc = kTable[(crc ^ static_cast<unsigned char>(c)) & 0xffu] ^ crc >> 8;
  return ~crc;
}

uint32_t masked_crc32c(std::string_view bytes) {
  return std::rotr(crc32c(bytes), 15) + 0xa282ead8u;
}

std::string tf_record(std::string_view data) {
  const std::string length = little_endian(data.size(), 8);
  std::string record = length + little_endian(masked_crc32c(length), 4);
  record += data;
  return record + little_endian(masked_crc32c(data), 4);
}

void ProtoMessage::varint(uint64_t value) {
  while (value >= 0x80) {
    text_ += static_cast<char>((value & 0x7f) | 0x80);
    value >>= 7;
  }
  text_ += static_cast<char>(value);
}

ProtoMessage& ProtoMessage::integer(uint32_t field, int64_t value) {
  varint(field << 3 | kVarint);
  varint(static_cast<uint64_t>(value));
  return *this;
}

ProtoMessage& ProtoMessage::real64(uint32_t field, double value) {
  varint(field << 3 | kFixed64);
  text_ += little_endian(std::bit_cast<uint64_t>(value), 8);
  return *this;
}

ProtoMessage& ProtoMessage::real32(uint32_t field, float value) {
  varint(field << 3 | kFixed32);
  text_ += little_endian(std::bit_cast<uint32_t>(value), 4);
  return *this;
}

ProtoMessage& ProtoMessage::bytes(uint32_t field, std::string_view value) {
  varint(field << 3 | kLengthDelimited);
  varint(value.size());
  text_ += value;
  return *this;
}

}  // namespace megalith::observe
