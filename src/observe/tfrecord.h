#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace megalith::observe {

// Just enough of TFRecord framing and of protobuf's wire format to write TensorBoard's event files.

uint32_t crc32c(std::string_view bytes);
// TFRecord stores checksums rotated and shifted, so that a checksum of data that holds checksums stays a good one.
uint32_t masked_crc32c(std::string_view bytes);

// Length, checksum of the length, data, checksum of the data.
std::string tf_record(std::string_view data);

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

}  // namespace megalith::observe
