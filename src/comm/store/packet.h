#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace megalith::comm {

enum class PacketKind : uint8_t {
  // from the server
  challenge = 1,  // value: a nonce
  ok,             // the answer to the request: value, number
  timed_out,      // the key did not appear in time
  refused,        // value: why
  // from a client
  hello,  // number: generation; key: rank; expected: a nonce; value: the proof that it knows the secret
  set,
  get,              // number: milliseconds to wait for the key
  add,              // number: amount
  compare_and_set,  // value in place of `expected`
  delete_prefix,
  read,  // of a byte server: value: how many bytes, number: at which offset; they follow the answer
};
constexpr PacketKind kFirstPacketKind = PacketKind::challenge;
constexpr PacketKind kLastPacketKind = PacketKind::read;

// What servers (the store, a byte server) and their clients say to each other. On the wire: the length of the rest
// (u32), kind (u8), number (i64), then key, value and expected, each as a length (u32) and bytes; little-endian.
struct Packet {
  PacketKind kind = PacketKind::ok;
  int64_t number = 0;
  std::string key;
  std::string value;
  std::string expected;

  bool operator==(const Packet&) const = default;
};

constexpr size_t kMaxPacketBytes = 1 << 20;
// Until a client is known.
constexpr size_t kMaxHelloBytes = 256;

// With its length in front. User error when it is too long.
std::string encode(const Packet& packet);

// Takes the first packet off `bytes`; nothing while it is not whole. Data error for what is no packet or is longer than
// `limit`.
std::optional<Packet> take_packet(std::string& bytes, size_t limit = kMaxPacketBytes);

}  // namespace megalith::comm
