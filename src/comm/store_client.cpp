#include <cmath>

#include "comm/keyed_hash.h"
#include "comm/packet.h"
#include "comm/store.h"
#include "comm/store_proof.h"
#include "core/clock.h"
#include "core/error.h"

namespace megalith::comm {

StoreClient::StoreClient(const StoreClientOptions& options)
    : where_(fmt::format("the store at {} port {}", options.host, options.port)),
      answer_deadline_(options.answer_deadline) {
  const double until = monotonic_seconds() + options.connect_deadline;
  socket_ = connect_to(options.host, options.port, until);
  if (options.secret.empty() && !socket_.to_loopback()) {
    user_error("{} is on another machine and needs a shared secret", where_);
  }
  introduce(options, until);
}

void StoreClient::introduce(const StoreClientOptions& options, double until) {
  const Packet challenge = read(until);
  const Introduction introduction{.server_nonce = challenge.value,
                                  .client_nonce = random_bytes(kNonceBytes),
                                  .generation = options.generation,
                                  .rank = std::to_string(options.rank)};
  write({.kind = PacketKind::hello,
         .number = introduction.generation,
         .key = introduction.rank,
         .value = client_proof(options.secret, introduction),
         .expected = introduction.client_nonce},
        until);
  const Packet answer = read(until);
  if (answer.kind == PacketKind::refused) fail(ErrorKind::comm, "{} refuses: {}", where_, answer.value);
  if (!equal_in_constant_time(answer.value, server_proof(options.secret, introduction))) {
    fail(ErrorKind::comm, "{} does not know the secret of this run", where_);
  }
}

void StoreClient::set(const std::string& key, const std::string& value) {
  request({.kind = PacketKind::set, .key = key, .value = value}, 0.0);
}

std::string StoreClient::get(const std::string& key, double seconds) {
  const auto milliseconds = static_cast<int64_t>(std::ceil(seconds * 1e3));
  const Packet answer = request({.kind = PacketKind::get, .number = milliseconds, .key = key}, seconds);
  if (answer.kind == PacketKind::timed_out) {
    fail(ErrorKind::comm, "nobody set '{}' in {} within {:.1f} s", key, where_, seconds);
  }
  return answer.value;
}

int64_t StoreClient::add(const std::string& key, int64_t amount) {
  return request({.kind = PacketKind::add, .number = amount, .key = key}, 0.0).number;
}

std::string StoreClient::compare_and_set(const std::string& key, const std::string& expected,
                                         const std::string& desired) {
  return request({.kind = PacketKind::compare_and_set, .key = key, .value = desired, .expected = expected}, 0.0).value;
}

void StoreClient::wait(const std::vector<std::string>& keys, double seconds) {
  const double until = monotonic_seconds() + seconds;
  for (const std::string& key : keys) get(key, std::max(0.0, until - monotonic_seconds()));
}

int64_t StoreClient::delete_prefix(const std::string& prefix) {
  return request({.kind = PacketKind::delete_prefix, .key = prefix}, 0.0).number;
}

Packet StoreClient::request(const Packet& packet, double seconds) {
  const std::lock_guard lock(mutex_);
  if (!socket_) fail(ErrorKind::comm, "{} was lost before", where_);
  const double until = monotonic_seconds() + seconds + answer_deadline_;
  write(packet, until);
  Packet answer = read(until);
  if (answer.kind == PacketKind::refused) {
    fail(ErrorKind::comm, "{} refuses to touch '{}': {}", where_, packet.key, answer.value);
  }
  return answer;
}

void StoreClient::write(const Packet& packet, double until) {
  std::string bytes = encode(packet);
  while (!bytes.empty()) {
    if (!socket_.wait_writable(until)) lose("does not listen");
    if (!socket_.write_from(bytes)) lose("closed the connection");
  }
}

Packet StoreClient::read(double until) {
  bool open = true;
  while (true) {
    if (std::optional<Packet> packet = take_packet(received_)) return *std::move(packet);
    if (!open) lose("closed the connection");
    if (!socket_.wait_readable(until)) lose("does not answer");
    open = socket_.read_into(received_, kMaxPacketBytes + sizeof(uint32_t));
  }
}

// An answer that came after all would be taken for that of the next request.
void StoreClient::lose(const char* why) {
  socket_ = Socket();
  fail(ErrorKind::comm, "{} {}", where_, why);
}

}  // namespace megalith::comm
