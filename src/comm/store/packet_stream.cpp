#include "comm/store/packet_stream.h"

#include <algorithm>
#include <cstring>

#include "comm/store/store_proof.h"
#include "core/error.h"
#include "core/hash/crypto.h"

namespace megalith::comm {

void PacketStream::check() const {
  if (is_lost_) fail(ErrorKind::comm, "{} was lost before", where_);
}

void PacketStream::lose(const char* why) {
  socket_.shut_down();
  is_lost_ = true;
  fail(ErrorKind::comm, "{} {}", where_, why);
}

void PacketStream::write(const Packet& packet, double until) {
  const std::string bytes = encode(packet);
  write_bytes(std::as_bytes(std::span(bytes)), until);
}

Packet PacketStream::read(double until, size_t limit) {
  check();
  bool open = true;
  while (true) {
    if (std::optional<Packet> packet = take_packet(received_, limit)) return *std::move(packet);
    if (!open) lose("closed the connection");
    if (!socket_.wait_readable(until)) lose("does not answer");
    open = socket_.read_into(received_, limit + sizeof(uint32_t));
  }
}

void PacketStream::write_bytes(std::span<const std::byte> bytes, double until) {
  check();
  while (!bytes.empty()) {
    if (!socket_.wait_writable(until)) lose("does not listen");
    const ssize_t count = socket_.write_some(bytes);
    if (count < 0) lose("closed the connection");
    bytes = bytes.subspan(static_cast<size_t>(count));
  }
}

void PacketStream::read_bytes(std::span<std::byte> into, double until) {
  check();
  // A packet's last read may have taken some of them along.
  const size_t early = std::min(into.size(), received_.size());
  std::memcpy(into.data(), received_.data(), early);
  received_.erase(0, early);
  into = into.subspan(early);
  while (!into.empty()) {
    if (!socket_.wait_readable(until)) lose("does not answer");
    const ssize_t count = socket_.read_some(into);
    if (count < 0) lose("closed the connection");
    into = into.subspan(static_cast<size_t>(count));
  }
}

void introduce(PacketStream& stream, const Identity& identity, double until) {
  const Packet challenge = stream.read(until);
  const Introduction introduction{.server_nonce = challenge.value,
                                  .client_nonce = random_bytes(kNonceBytes),
                                  .generation = identity.generation,
                                  .rank = std::to_string(identity.rank)};
  stream.write({.kind = PacketKind::hello,
                .number = introduction.generation,
                .key = introduction.rank,
                .value = client_proof(identity.secret, introduction),
                .expected = introduction.client_nonce},
               until);
  const Packet answer = stream.read(until);
  if (answer.kind == PacketKind::refused) fail(ErrorKind::comm, "{} refuses: {}", stream.where(), answer.value);
  if (!equal_in_constant_time(answer.value, server_proof(identity.secret, introduction)))
    fail(ErrorKind::comm, "{} does not know the secret of this run", stream.where());
}

}  // namespace megalith::comm
