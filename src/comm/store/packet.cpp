#include "comm/store/packet.h"

#include <cstring>

#include "core/error.h"

namespace megalith::comm {

namespace {
template <class T>
void put(std::string& bytes, T value) {
  char raw[sizeof value];
  std::memcpy(raw, &value, sizeof value);
  bytes.append(raw, sizeof value);
}

void put_text(std::string& bytes, const std::string& text) {
  put(bytes, static_cast<uint32_t>(text.size()));
  bytes += text;
}

class Reader {
 public:
  explicit Reader(std::string_view bytes) : rest_(bytes) {}

  template <class T>
  T take() {
    T value;
    std::memcpy(&value, take_bytes(sizeof value).data(), sizeof value);
    return value;
  }
  std::string take_text() { return std::string(take_bytes(take<uint32_t>())); }
  bool done() const { return rest_.empty(); }

 private:
  std::string_view take_bytes(size_t count) {
    if (count > rest_.size()) data_error("a packet ends {} bytes early", count - rest_.size());
    const std::string_view bytes = rest_.substr(0, count);
    rest_.remove_prefix(count);
    return bytes;
  }

  std::string_view rest_;
};

Packet decode(std::string_view body) {
  Reader reader(body);
  const auto kind = reader.take<uint8_t>();
  if (kind < static_cast<uint8_t>(kFirstPacketKind) || kind > static_cast<uint8_t>(kLastPacketKind)) {
    data_error("a packet of unknown kind {}", kind);
  }
  Packet packet;
  packet.kind = static_cast<PacketKind>(kind);
  packet.number = reader.take<int64_t>();
  packet.key = reader.take_text();
  packet.value = reader.take_text();
  packet.expected = reader.take_text();
  if (!reader.done()) data_error("a packet with bytes behind its end");
  return packet;
}
}  // namespace

std::string encode(const Packet& packet) {
  std::string body;
  put(body, static_cast<uint8_t>(packet.kind));
  put(body, packet.number);
  put_text(body, packet.key);
  put_text(body, packet.value);
  put_text(body, packet.expected);
  if (body.size() > kMaxPacketBytes) {
    user_error("key '{}' and its value have {} bytes, the store takes {}", packet.key.substr(0, 80), body.size(),
               kMaxPacketBytes);
  }
  std::string framed;
  put(framed, static_cast<uint32_t>(body.size()));
  return framed + body;
}

std::optional<Packet> take_packet(std::string& bytes, size_t limit) {
  uint32_t length = 0;
  if (bytes.size() < sizeof length) return std::nullopt;
  std::memcpy(&length, bytes.data(), sizeof length);
  if (length > limit) data_error("a packet of {} bytes, {} are allowed", length, limit);
  if (bytes.size() < sizeof length + length) return std::nullopt;
  Packet packet = decode(std::string_view(bytes).substr(sizeof length, length));
  bytes.erase(0, sizeof length + length);
  return packet;
}

}  // namespace megalith::comm
