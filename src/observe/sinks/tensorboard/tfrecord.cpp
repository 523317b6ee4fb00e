#include "observe/sinks/tensorboard/tfrecord.h"

#include <array>
#include <bit>
#include <istream>

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

uint64_t from_little_endian(std::string_view bytes) {
  uint64_t value = 0;
  for (size_t i = 0; i < bytes.size(); ++i)
    value |= static_cast<uint64_t>(static_cast<unsigned char>(bytes[i])) << (8 * i);
  return value;
}

bool read_exactly(std::istream& file, std::string& bytes, size_t count) {
  bytes.resize(count);
  return static_cast<bool>(file.read(bytes.data(), static_cast<std::streamsize>(count)));
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

bool read_tf_record(std::istream& file, std::string& data) {
  constexpr uint64_t kLongest = 1 << 28;
  std::string head;
  std::string check;
  if (!read_exactly(file, head, 12)) return false;
  const std::string_view length = std::string_view(head).substr(0, 8);
  if (from_little_endian(std::string_view(head).substr(8)) != masked_crc32c(length)) return false;
  const uint64_t bytes = from_little_endian(length);
  if (bytes > kLongest || !read_exactly(file, data, bytes) || !read_exactly(file, check, 4)) return false;
  return from_little_endian(check) == masked_crc32c(data);
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

bool ProtoReader::take_varint(uint64_t& value) {
  value = 0;
  for (int shift = 0; shift < 64 && !rest_.empty(); shift += 7) {
    const auto byte = static_cast<unsigned char>(rest_.front());
    rest_.remove_prefix(1);
    value |= static_cast<uint64_t>(byte & 0x7f) << shift;
    if ((byte & 0x80) == 0) return true;
  }
  return false;
}

bool ProtoReader::next() {
  uint64_t key = 0;
  if (!take_varint(key)) return false;
  field_ = static_cast<uint32_t>(key >> 3);
  const auto type = static_cast<uint32_t>(key & 7);
  if (type == kVarint) return take_varint(number_);
  uint64_t length = type == kFixed64 ? 8 : 4;
  if (type == kLengthDelimited && !take_varint(length)) return false;
  if (type != kFixed64 && type != kFixed32 && type != kLengthDelimited) return false;
  if (length > rest_.size()) return false;
  bytes_ = rest_.substr(0, length);
  rest_.remove_prefix(length);
  return true;
}

}  // namespace megalith::observe
