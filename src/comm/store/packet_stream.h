#pragma once

#include <span>
#include <string>

#include "comm/store/packet.h"
#include "comm/store/socket.h"

namespace megalith::comm {

// A connection over which packets and plain bytes travel, for a side that has nothing to do but wait. Where the other
// side breaks off or is not there `until` a moment (monotonic seconds), that is a comm error, and so is every call
// after it: an answer that came after all would be taken for that of the next request.
class PacketStream {
 public:
  // `where`: how errors call the other side.
  PacketStream(Socket socket, std::string where) : socket_(std::move(socket)), where_(std::move(where)) {}

  const std::string& where() const { return where_; }
  const Socket& socket() const { return socket_; }
  bool is_lost() const { return is_lost_; }

  void write(const Packet& packet, double until);
  Packet read(double until, size_t limit = kMaxPacketBytes);
  // What follows a packet that says how much it is.
  void write_bytes(std::span<const std::byte> bytes, double until);
  void read_bytes(std::span<std::byte> into, double until);

 private:
  void check() const;
  [[noreturn]] void lose(const char* why);

  Socket socket_;
  std::string where_;
  std::string received_;
  bool is_lost_ = false;
};

// What a client says of itself.
struct Identity {
  std::string secret;
  int64_t generation = 0;
  int rank = 0;
};

// The first words of a client: each side proves that it knows the secret. Comm error where the other does not, or
// refuses this one.
void introduce(PacketStream& stream, const Identity& identity, double until);

}  // namespace megalith::comm
