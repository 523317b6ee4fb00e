#pragma once

#include <cstdint>
#include <iosfwd>
#include <string>
#include <string_view>

namespace megalith::observe {

// Just enough of TFRecord framing and of protobuf's wire format to write TensorBoard's event files and to read ours.

uint32_t crc32c(std::string_view bytes);
// TFRecord stores checksums rotated and shifted, so that a checksum of data that holds checksums stays a good one.
uint32_t masked_crc32c(std::string_view bytes);

// Length, checksum of the length, data, checksum of the data.
std::string tf_record(std::string_view data);
// The data of the next record; false at the end of the file and where a record is torn or damaged.
bool read_tf_record(std::istream& file, std::string& data);

// Builds one protobuf message field by field.
class ProtoMessage {
 public:
  ProtoMessage& integer(uint32_t field, int64_t value);
  ProtoMessage& real64(uint32_t field, double value);
  ProtoMessage& real32(uint32_t field, float value);
  ProtoMessage& bytes(uint32_t field, std::string_view value);
  ProtoMessage& message(uint32_t field, const ProtoMessage& value) { return bytes(field, value.text_); }

  const std::string& text() const { return text_; }

 private:
  void varint(uint64_t value);

  std::string text_;
};

// Walks through the fields of one protobuf message, which must outlive it.
class ProtoReader {
 public:
  explicit ProtoReader(std::string_view message) : rest_(message) {}

  // False at the end, and where what follows is no field.
  bool next();
  uint32_t field() const { return field_; }
  uint64_t number() const { return number_; }        // of an integer
  std::string_view bytes() const { return bytes_; }  // of anything else

 private:
  bool take_varint(uint64_t& value);

  std::string_view rest_;
  uint32_t field_ = 0;
  uint64_t number_ = 0;
  std::string_view bytes_;
};

}  // namespace megalith::observe
